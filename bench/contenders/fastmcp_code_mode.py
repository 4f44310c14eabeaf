"""FastMCP's CodeMode through its in-memory client: a new Monty pool per action, no type check."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from fastmcp import Client, FastMCP
from fastmcp.experimental.transforms.code_mode import CodeMode, MontySandboxProvider
from serving import Job, actions, add_async, nap, serve


async def jobs(stack: AsyncExitStack) -> Mapping[str, Job]:
    limits: Any = {"max_feed_duration_secs": 30.0, "max_suspensions": 10**9}
    code_mode = CodeMode(sandbox_provider=MontySandboxProvider(limits=limits), max_tool_calls=None)
    server = FastMCP("bench", transforms=[code_mode])
    server.tool(add_async, name="add")
    server.tool(nap, name="nap")
    client = await stack.enter_async_context(Client(server))

    async def run(code: str) -> Any:
        (content,) = (await client.call_tool("execute", {"code": code})).content
        return int(getattr(content, "text", ""))

    return actions(
        run,
        lambda a, b: f"(await call_tool('add', {{'a': {a}, 'b': {b}}}))['result']",
        lambda i: f"call_tool('nap', {{'i': {i}}})",
    )


serve(jobs)
