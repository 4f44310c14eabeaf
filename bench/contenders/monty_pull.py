"""Monty driven by its own async pull loop, by hand: what the gate on Monty is compared with."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import bare_calls
import pydantic_monty as pm
from serving import Job, actions, add, add_async, nap, serve

STYLE = sys.argv[1]
"""`def` or `async`: how `add` is offered; or the framework whose bare call it is."""
TOOLS: dict[str, Any] = {"add": add_async, "nap": nap}


async def pull(session: Any, code: str) -> Any:
    """The value of an action; calls of `async def` tools run as tasks, those of `def` tools are answered at once."""
    tasks: dict[int, asyncio.Task[Any]] = {}
    snapshot = await session.feed_start(code)
    while True:
        match snapshot:
            case pm.MontyComplete():
                return snapshot.output
            case pm.AsyncFutureSnapshot():
                await asyncio.wait(tasks.values(), return_when=asyncio.FIRST_COMPLETED)
                done = [call_id for call_id, task in tasks.items() if task.done()]
                snapshot = await snapshot.resume({i: {"return_value": tasks.pop(i).result()} for i in done})
            case pm.AsyncFunctionSnapshot():
                snapshot = await _call(snapshot, tasks)
            case _:
                raise TypeError(f"{snapshot!r} was not expected")


async def _call(snapshot: Any, tasks: dict[int, asyncio.Task[Any]]) -> Any:
    name, args, kwargs = snapshot.function_name, snapshot.args, snapshot.kwargs
    if name == "add" and STYLE == "def":
        return await snapshot.resume({"return_value": add(*args, **kwargs)})
    tasks[snapshot.call_id] = asyncio.create_task(TOOLS[name](*args, **kwargs))
    return await snapshot.resume({"future": ...})


async def jobs(stack: AsyncExitStack) -> Mapping[str, Job]:
    if STYLE not in ("def", "async"):
        TOOLS["add"] = await getattr(bare_calls, STYLE)()
    pool = await stack.enter_async_context(pm.AsyncMonty())

    async def run(code: str) -> Any:
        async with pool.checkout(limits={"max_suspensions": 10**9}) as session:
            return await pull(session, code)

    awaited = "" if STYLE == "def" else "await "
    return actions(run, lambda a, b: f"{awaited}add({a}, {b})", lambda i: f"nap({i})")


serve(jobs)
