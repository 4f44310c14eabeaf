"""Microsoft Agent Framework's Monty code tool, invoked as its agent invokes it: a new Monty pool per action."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from agent_framework import SessionContext, tool
from agent_framework_monty import MontyCodeActProvider, MontyExecuteCodeTool
from serving import Job, actions, add_async, loop_gaps, nap, serve


async def jobs(stack: AsyncExitStack) -> Mapping[str, Job]:
    tools = [tool(add_async, name="add"), tool(nap, name="nap")]
    code_tool = MontyExecuteCodeTool(tools=tools, resource_limits={"max_suspensions": 10**9})

    async def run(code: str) -> Any:
        (content,) = await code_tool.invoke(arguments={"code": code})
        if content.type == "error":
            raise RuntimeError(content.error_details)
        return json.loads(content.text or "null")

    found = actions(run, lambda a, b: f"await add(a={a}, b={b})", lambda i: f"nap(i={i})")
    crowd = MontyCodeActProvider(tools=[tool(add_async, name=f"add_{n}") for n in range(100)])
    return {**found, "gap": lambda n: loop_gaps(n, run), "before_run": lambda n: _before(n, crowd)}


async def _before(n: int, provider: Any) -> list[float]:
    seconds: list[float] = []
    for _ in range(n):
        context = SessionContext(input_messages=[])
        started = time.perf_counter()
        await provider.before_run(agent=None, session=None, context=context, state={})
        seconds.append(time.perf_counter() - started)
    return seconds


serve(jobs)
