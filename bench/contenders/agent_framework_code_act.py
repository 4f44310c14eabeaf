"""Microsoft Agent Framework's Monty code tool, invoked as its agent invokes it: a new Monty pool per action."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from agent_framework import tool
from agent_framework_monty import MontyExecuteCodeTool
from serving import Job, actions, add_async, nap, serve


async def jobs(stack: AsyncExitStack) -> Mapping[str, Job]:
    tools = [tool(add_async, name="add"), tool(nap, name="nap")]
    code_tool = MontyExecuteCodeTool(tools=tools, resource_limits={"max_suspensions": 10**9})

    async def run(code: str) -> Any:
        (content,) = await code_tool.invoke(arguments={"code": code})
        if content.type == "error":
            raise RuntimeError(content.error_details)
        return json.loads(content.text or "null")

    return actions(run, lambda a, b: f"await add(a={a}, b={b})", lambda i: f"nap(i={i})")


serve(jobs)
