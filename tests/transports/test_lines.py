"""Early reads: what a channel takes without a turn of the event loop, and when it leaves the loop its turn."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Generator

import pytest

from hatchway.core.errors import TransportError
from hatchway.transports import lines as module
from hatchway.transports.lines import LineChannel

pytestmark = pytest.mark.anyio

LONG = 5_000
"""Milliseconds nobody waits for: a test that stands by so long hangs."""


class Heard:
    """Keeps what was read."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def on_lines(self, lines: list[bytes]) -> None:
        self.lines += lines

    def on_end(self, problem: TransportError | EOFError) -> None:
        self.lines.append(repr(problem).encode())


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GLANCE", LONG)
    monkeypatch.setattr(module, "_reading", 0)  # other tests of this process may have channels of their own


@pytest.fixture
def ends() -> Generator[tuple[LineChannel, int]]:
    read, say = os.pipe()
    drain, write = os.pipe()
    channel = LineChannel(read, write, max_line=1 << 16)
    yield channel, say
    channel.close()
    os.close(drain)
    os.close(say)


async def test_what_has_come_is_taken_without_a_turn_of_the_loop(ends: tuple[LineChannel, int], patient: None) -> None:
    channel, say = ends
    heard = Heard()
    channel.open(heard)
    os.write(say, b"{}\n")
    assert channel.read_early()
    assert heard.lines == [b"{}"]


async def test_news_for_the_loop_end_the_standing_by(ends: tuple[LineChannel, int], patient: None) -> None:
    channel, _ = ends
    channel.open(Heard())
    came: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    loop = asyncio.get_running_loop()
    timer = threading.Timer(0.05, loop.call_soon_threadsafe, (came.set_result, "from a thread"))
    timer.start()
    started = time.monotonic()
    assert not channel.read_early()
    assert await came == "from a thread"
    assert time.monotonic() - started < LONG / 2000
    timer.join()


async def test_nobody_stands_by_while_the_loop_has_something_to_do(
    ends: tuple[LineChannel, int], patient: None
) -> None:
    channel, say = ends
    heard = Heard()
    channel.open(heard)
    done: list[str] = []
    asyncio.get_running_loop().call_soon(done.append, "its turn")
    os.write(say, b"{}\n")
    assert not channel.read_early()
    await asyncio.sleep(0.01)
    assert (done, heard.lines) == (["its turn"], [b"{}"])


async def test_standing_by_in_vain_becomes_rare(ends: tuple[LineChannel, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GLANCE", 1)
    monkeypatch.setattr(module, "_reading", 0)
    channel, _ = ends
    channel.open(Heard())
    started = time.monotonic()
    assert not any(channel.read_early() for _ in range(1000))
    assert time.monotonic() - started < 0.5  # some six times a millisecond, not a thousand times
