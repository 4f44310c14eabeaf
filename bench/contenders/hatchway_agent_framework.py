"""Hatchway's `execute_code` for Agent Framework, invoked as its agent does; `floor`: a tool that does nothing."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from agent_framework import FunctionTool, SessionContext, tool
from serving import Job, actions, add_async, loop_gaps, nap, serve

from hatchway.adapters.agent_framework import JailCodeActProvider, MontyCodeActProvider

SANDBOX = sys.argv[1]
PROVIDERS: dict[str, Any] = {"monty": MontyCodeActProvider, "jail": JailCodeActProvider}


async def execute_code(code: str) -> str:
    """Runs nothing."""
    return {"1 + 1": "2"}.get(code, "3")


async def jobs(stack: AsyncExitStack) -> Mapping[str, Job]:
    if SANDBOX == "floor":
        found = actions(_runner(tool(execute_code, name="execute_code")), lambda a, b: "3", None)
        return {name: found[name] for name in ("fresh", "action")}
    provider = PROVIDERS[SANDBOX](tools=[tool(add_async, name="add"), tool(nap, name="nap")])
    stack.push_async_callback(provider.aclose)
    run = _runner(await _prepared(provider))
    crowd = PROVIDERS[SANDBOX](tools=[tool(add_async, name=f"add_{n}") for n in range(100)])
    await _prepared(crowd)
    found = actions(run, lambda a, b: f"await add({a}, {b})", lambda i: f"nap({i})")
    return {**found, "gap": lambda n: loop_gaps(n, run), "before_run": lambda n: _before(n, crowd)}


async def _before(n: int, provider: Any) -> list[float]:
    seconds: list[float] = []
    for _ in range(n):
        started = time.perf_counter()
        await _prepared(provider)
        seconds.append(time.perf_counter() - started)
    return seconds


async def _prepared(provider: Any) -> FunctionTool:
    context = SessionContext(input_messages=[])
    await provider.before_run(agent=None, session=None, context=context, state={})
    return context.tools[0]


def _runner(made: FunctionTool) -> Any:
    async def run(code: str) -> Any:
        content, *errors = await made.invoke(arguments={"code": code})
        if errors:
            raise RuntimeError(content.text)
        return json.loads(content.text or "null")

    return run


serve(jobs)
