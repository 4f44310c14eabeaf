"""Wakeup: resumes its task inside the callback, and behaves as a future towards everything else."""

import asyncio

import anyio
import pytest

from hatchway.transports.guest.wakeup import Wakeup

pytestmark = pytest.mark.anyio


async def waited(wakeup: Wakeup, log: list[str]) -> str:
    log.append("waits")
    await wakeup
    log.append("woken")
    return "done"


async def test_a_callback_resumes_the_task_at_once() -> None:
    log: list[str] = []
    loop = asyncio.get_running_loop()
    wakeup = Wakeup(loop)
    task = asyncio.create_task(waited(wakeup, log))
    await asyncio.sleep(0)

    def callback() -> None:
        wakeup.wake()
        log.append("callback goes on")

    loop.call_soon(callback)
    assert await task == "done"
    assert log == ["waits", "woken", "callback goes on"]


async def test_a_task_is_not_interrupted_by_another() -> None:
    log: list[str] = []
    wakeup = Wakeup(asyncio.get_running_loop())
    task = asyncio.create_task(waited(wakeup, log))
    await asyncio.sleep(0)
    wakeup.wake()
    log.append("this task goes on")
    assert await task == "done"
    assert log == ["waits", "this task goes on", "woken"]


async def test_it_can_be_awaited_again_and_a_wake_for_nobody_is_forgotten() -> None:
    loop = asyncio.get_running_loop()
    wakeup = Wakeup(loop)
    for _ in range(3):
        wakeup.wake()
        assert not wakeup.is_awaited
        loop.call_later(0.01, wakeup.wake)
        await asyncio.wait_for(asyncio.ensure_future(waited(wakeup, [])), 5)


async def test_cancellation_and_timeouts() -> None:
    log: list[str] = []
    wakeup = Wakeup(asyncio.get_running_loop())
    task = asyncio.create_task(waited(wakeup, log))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    wakeup.wake()
    loop = asyncio.get_running_loop()
    loop.call_later(0.01, wakeup.wake)
    await wakeup  # as good as new
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await Wakeup(asyncio.get_running_loop())
    assert log == ["waits"]


async def test_woken_and_cancelled_in_one_turn_is_cancelled() -> None:
    """Nothing is lost by it: a wakeup carries nothing, what has come waits in a queue."""
    log: list[str] = []
    wakeup = Wakeup(asyncio.get_running_loop())
    task = asyncio.create_task(waited(wakeup, log))
    await asyncio.sleep(0)
    wakeup.wake()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancel_scope_knows_its_own_cancellation() -> None:
    """anyio tells whose a cancellation is by its message, which therefore must come through."""
    wakeup = Wakeup(asyncio.get_running_loop())
    with anyio.move_on_after(0.01) as scope:
        await wakeup
    assert scope.cancelled_caught
    task = asyncio.ensure_future(waited(wakeup, []))
    await asyncio.sleep(0)
    task.cancel("why")
    with pytest.raises(asyncio.CancelledError, match="why"):
        await task
