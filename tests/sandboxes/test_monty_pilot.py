"""Flights in a pilot's thread: told on the loop, in order; a wait that is given up leaves them in the air."""

from __future__ import annotations

import asyncio
import threading
import time

import anyio
import pytest

from hatchway.core.calls import FunctionCall
from hatchway.sandboxes.monty import MontySandbox
from hatchway.sandboxes.monty.pilot import Pilot
from hatchway.testing.conformance.drive import finish, started

pytestmark = pytest.mark.anyio


async def test_a_flight_gives_its_value_or_its_error() -> None:
    pilot = Pilot()
    assert await pilot.flown(lambda: threading.current_thread().name) == "hatchway monty"
    with pytest.raises(KeyError, match="x"):
        await pilot.flown({}.__getitem__, "x")
    assert not pilot.is_flying
    pilot.dismiss()


async def test_flights_go_one_after_another() -> None:
    pilot = Pilot()
    told: list[object] = []
    for n in range(5):
        pilot.fly(lambda value, _error: told.append(value), lambda n=n: (time.sleep(0.002 * (5 - n)), n)[1])
    assert await pilot.flown(lambda: "last") == "last"
    assert told == [0, 1, 2, 3, 4]
    pilot.dismiss()


async def test_nobody_need_ask_for_a_flight_to_land() -> None:
    pilot = Pilot()
    landed = asyncio.Event()
    pilot.fly(lambda _value, _error: landed.set(), time.sleep, 0.02)
    async with asyncio.timeout(5):
        await landed.wait()
    pilot.dismiss()


async def test_cancelling_the_wait_leaves_the_flight_in_the_air() -> None:
    pilot = Pilot()
    done: list[int] = []
    for n in range(3):
        task = asyncio.ensure_future(pilot.flown(lambda n=n: (time.sleep(0.05), done.append(n))))
        await asyncio.sleep(0.01)
        task.cancel("why")
        with pytest.raises(asyncio.CancelledError, match="why"):
            await task
    await pilot.flown(lambda: None)
    assert done == [0, 1, 2]
    pilot.dismiss()


async def test_the_loop_turns_while_a_long_flight_is_in_the_air() -> None:
    pilot = Pilot()
    turns = 0
    flight = asyncio.ensure_future(pilot.flown(time.sleep, 0.3))
    while not flight.done():
        turns += 1
        await asyncio.sleep(0.01)
    assert turns > 5
    pilot.dismiss()


async def test_a_next_that_is_given_up_loses_nothing_while_the_code_works() -> None:
    code = "for i in range(20):\n    sum(range(100_000))\n    tool(i)\n'end'"
    seen: list[int] = []
    async with MontySandbox() as sandbox, started(sandbox, code, ["tool"]) as execution:
        for _ in range(50):
            with anyio.move_on_after(0.0005):
                call = await execution.next()
                if not isinstance(call, FunctionCall):
                    break  # a quick machine is through before
                seen.append(call.args[0])
                await execution.provide_result(None, call_id=call.call_id)
        result = await finish(execution, {"tool": seen.append})
    assert (seen, result.output) == (list(range(20)), "end")
