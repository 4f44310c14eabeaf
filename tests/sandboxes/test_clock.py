"""The wall clock: what counts, what does not, and what a lie costs."""

import asyncio

import pytest

from hatchway.sandboxes.clock import CORES, WallClock

pytestmark = pytest.mark.anyio


async def test_it_strikes_once_when_the_time_is_over() -> None:
    struck: list[float] = []
    clock = WallClock(0.2, lambda: 0.0, lambda: struck.append(clock.ran))
    await asyncio.sleep(0.1)
    assert struck == []
    await asyncio.sleep(0.4)
    assert len(struck) == 1
    assert 0.2 <= struck[0] < 0.35


async def test_it_stands_while_the_code_waits() -> None:
    struck: list[bool] = []
    clock = WallClock(0.3, lambda: 0.0, lambda: struck.append(True))
    clock.stand()
    await asyncio.sleep(0.5)
    assert struck == []
    assert clock.ran < 0.1
    clock.run()
    await asyncio.sleep(0.6)
    assert struck == [True]


async def test_cpu_burnt_while_it_stands_counts() -> None:
    struck: list[bool] = []
    begun = asyncio.get_running_loop().time()

    def burning() -> float:
        return CORES * (asyncio.get_running_loop().time() - begun)

    clock = WallClock(0.3, burning, lambda: struck.append(True))
    clock.stand()
    await asyncio.sleep(0.8)
    assert struck == [True]


async def test_honest_work_on_all_cores_is_no_lie() -> None:
    """Code that ran 0.3 s on every core and now waits has time left."""
    struck: list[bool] = []
    clock = WallClock(0.5, lambda: CORES * 0.3, lambda: struck.append(True))
    await asyncio.sleep(0.3)
    clock.stand()
    await asyncio.sleep(0.6)
    assert struck == []
    clock.stop()


async def test_stopped_it_never_strikes() -> None:
    struck: list[bool] = []
    clock = WallClock(0.1, lambda: 0.0, lambda: struck.append(True))
    clock.stop()
    ran = clock.ran
    await asyncio.sleep(0.3)
    assert struck == []
    assert clock.ran == ran
