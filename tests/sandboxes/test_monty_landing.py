"""Waiting for a future that is somebody else's: woken by it, cancelled without it."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from hatchway.sandboxes.monty import MontySandbox
from hatchway.sandboxes.monty.landing import Landing
from hatchway.testing.conformance.drive import finish, started

pytestmark = pytest.mark.anyio


def flight() -> asyncio.Future[int]:
    return asyncio.get_running_loop().create_future()


async def waited(future: asyncio.Future[int]) -> str:
    await Landing(future)
    return "landed"


async def test_a_result_wakes_and_so_does_an_error() -> None:
    for end in (lambda f: f.set_result(1), lambda f: f.set_exception(ValueError("x"))):
        future = flight()
        task = asyncio.ensure_future(waited(future))
        await asyncio.sleep(0)
        end(future)
        assert await task == "landed"
        assert future.done()
        future.exception()


async def test_what_has_landed_is_waited_for_no_longer_than_its_callbacks() -> None:
    future = flight()
    told: list[str] = []
    future.add_done_callback(lambda _: told.append("landed"))
    future.set_result(1)
    await Landing(future)
    assert told == ["landed"]


async def test_cancelling_the_wait_leaves_the_flight_in_the_air() -> None:
    future = flight()
    for _ in range(3):
        task = asyncio.ensure_future(waited(future))
        await asyncio.sleep(0)
        task.cancel("why")
        with pytest.raises(asyncio.CancelledError, match="why"):
            await task
        assert not future.done()
    last = asyncio.ensure_future(waited(future))
    await asyncio.sleep(0)
    future.set_result(1)
    assert await last == "landed"


async def test_cancelled_before_it_waits_and_as_it_lands() -> None:
    future = flight()
    unstarted = asyncio.ensure_future(waited(future))
    unstarted.cancel()
    with pytest.raises(asyncio.CancelledError):
        await unstarted
    landing = asyncio.ensure_future(waited(future))
    await asyncio.sleep(0)
    future.set_result(1)
    landing.cancel()  # it is about to be woken: the cancellation comes with that
    with pytest.raises(asyncio.CancelledError):
        await landing
    await asyncio.sleep(0)


async def test_timeouts_and_cancel_scopes() -> None:
    future = flight()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await Landing(future)
    with anyio.move_on_after(0.01) as scope:
        await Landing(future)
    assert scope.cancelled_caught
    assert not future.done()


async def test_a_next_that_is_given_up_loses_nothing_while_the_code_works() -> None:
    code = "for i in range(20):\n    sum(range(100_000))\n    tool(i)\n'end'"
    seen: list[int] = []
    async with MontySandbox() as sandbox, started(sandbox, code, ["tool"]) as execution:
        for _ in range(50):
            with anyio.move_on_after(0.0005):
                call = await execution.next()
                seen.append(call.args[0])  # type: ignore[union-attr]
                await execution.provide_result(None, call_id=call.call_id)  # type: ignore[union-attr]
        result = await finish(execution, {"tool": seen.append})
    assert (seen, result.output) == (list(range(20)), "end")
