"""Hatchway's `execute_code` for Agent Framework, invoked as its agent does; `floor`: a tool that does nothing."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
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
        run = _runner(tool(execute_code, name="execute_code"))
        found = actions(run, lambda a, b: "3", None)
        return {"fresh": found["fresh"], "action": found["action"], "gap": lambda n: loop_gaps(n, run)}
    provider = PROVIDERS[SANDBOX](tools=[tool(add_async, name="add"), tool(nap, name="nap")])
    stack.push_async_callback(provider.aclose)
    run = _runner(await _prepared(provider))
    many = [tool(add_async, name=f"add_{n}") for n in range(100)]
    workspace = Path(stack.enter_context(TemporaryDirectory()))
    for n in range(2000):
        (workspace / f"{n}.txt").write_text("some text")
    crowd, large = PROVIDERS[SANDBOX](tools=many), PROVIDERS[SANDBOX](tools=many, workspace_root=workspace)
    found = actions(run, lambda a, b: f"await add({a}, {b})", lambda i: f"nap({i})")
    before = {"before_run": lambda n: _before(n, crowd), "before_run_large": lambda n: _before(n, large)}
    return {**found, **before, "gap": lambda n: loop_gaps(n, run)}


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
