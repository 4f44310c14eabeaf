"""The fake tools do what they say."""

import time

import pytest

from hatchway.testing import tools

pytestmark = pytest.mark.anyio


async def test_plain_tools() -> None:
    assert tools.add(1, 2) == 3
    assert tools.echo({"a": [1]}) == {"a": [1]}
    with pytest.raises(ValueError, match=r"^no apples$"):
        tools.fail("no apples")


async def test_slow_takes_its_time() -> None:
    begun = time.monotonic()
    assert await tools.slow(0.05, "value") == "value"
    assert time.monotonic() - begun >= 0.05


async def test_counter_logs_every_effect() -> None:
    counter = tools.Counter()
    assert [counter.increment(), counter.increment(5), counter.increment()] == [1, 6, 7]
    assert counter.effects == [1, 5, 1]
    assert counter.total == 7
