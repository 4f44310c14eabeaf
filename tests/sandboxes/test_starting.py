"""What is started or ended is not lost, however often its caller is cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from hatchway.sandboxes.starting import started, to_the_end

pytestmark = pytest.mark.anyio


async def cancelled_again_and_again(task: asyncio.Task[object], goes_on: Callable[[], object]) -> None:
    """Cancel it at every turn of the loop, as a cancel scope of anyio does; `goes_on` lets it end after some turns."""
    await asyncio.sleep(0)  # else it would never begin
    for turn in range(1000):
        task.cancel()
        await asyncio.sleep(0.001)
        if turn == 10:
            goes_on()
        if task.done():
            break
    assert task.cancelled()


@pytest.mark.parametrize("is_failing", [False, True])
async def test_what_nobody_takes_is_undone(is_failing: bool) -> None:
    goes_on, undone = threading.Event(), list[str]()

    def start() -> str:
        goes_on.wait(60)
        if is_failing:
            raise OSError("it does not start")
        return "made"

    task = asyncio.ensure_future(started(start, undone.append))
    await cancelled_again_and_again(task, goes_on.set)
    assert undone == ([] if is_failing else ["made"])


async def test_it_is_ended_before_the_caller_is_cancelled() -> None:
    goes_on, ended = asyncio.Event(), list[str]()

    async def ending() -> None:
        await goes_on.wait()
        ended.append("ended")

    task = asyncio.ensure_future(to_the_end(ending()))
    await cancelled_again_and_again(task, goes_on.set)
    assert ended == ["ended"]


async def test_what_an_ending_gives_or_raises_is_told() -> None:
    async def gives() -> int:
        return 7

    async def fails() -> None:
        raise ValueError("no end")

    assert await to_the_end(gives()) == 7
    with pytest.raises(ValueError, match="no end"):
        await to_the_end(fails())


def test_a_loop_that_ends_loses_nothing_either() -> None:
    goes_on, undone = threading.Event(), list[str]()

    def start() -> str:
        goes_on.wait(60)
        return "made"

    async def left_behind() -> None:
        waiting: Awaitable[object] = asyncio.ensure_future(started(start, undone.append))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.01, goes_on.set)
        del waiting

    asyncio.run(left_behind())
    assert undone == ["made"]
