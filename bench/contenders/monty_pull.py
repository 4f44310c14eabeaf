"""Monty driven by its own async pull loop, by hand: what the gate on Monty is compared with."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import pydantic_monty as pm
from serving import Job, actions, add_async, nap, serve

TOOLS = {"add": add_async, "nap": nap}


async def pull(session: Any, code: str) -> Any:
    """The value of an action; a call that is not awaited at once runs as a task of its own."""
    tasks: dict[int, asyncio.Task[Any]] = {}
    snapshot = await session.feed_start(code)
    while True:
        match snapshot:
            case pm.MontyComplete():
                return snapshot.output
            case pm.AsyncFutureSnapshot():
                waiting = [tasks[call_id] for call_id in snapshot.pending_call_ids]
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                done = {call_id: task for call_id, task in tasks.items() if task.done()}
                snapshot = await snapshot.resume({i: {"return_value": tasks.pop(i).result()} for i in done})
            case pm.AsyncFunctionSnapshot():
                snapshot = await _call(snapshot, tasks)
            case _:
                raise TypeError(f"{snapshot!r} was not expected")


async def _call(snapshot: Any, tasks: dict[int, asyncio.Task[Any]]) -> Any:
    calling = TOOLS[snapshot.function_name](*snapshot.args, **snapshot.kwargs)
    if snapshot.allow_eager_await or "--sync" in sys.argv:
        return await snapshot.resume({"return_value": await calling})
    tasks[snapshot.call_id] = asyncio.create_task(calling)
    return await snapshot.resume({"future": ...})


async def jobs(stack: AsyncExitStack) -> Mapping[str, Job]:
    pool = await stack.enter_async_context(pm.AsyncMonty())

    async def run(code: str) -> Any:
        async with pool.checkout(limits={"max_suspensions": 10**9}) as session:
            return await pull(session, code)

    awaited = "" if "--sync" in sys.argv else "await "
    return actions(run, lambda a, b: f"{awaited}add({a}, {b})", lambda i: f"nap({i})")


serve(jobs)
