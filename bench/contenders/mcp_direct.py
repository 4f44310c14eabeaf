"""Calls of an MCP server by the SDK's own client, one after the other: what no code in between can be faster than."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp_time import ARGUMENTS, SERVER, TOOL
from serving import Job, lasting, serve


async def jobs(stack: AsyncExitStack) -> Mapping[str, Job]:
    client = await stack.enter_async_context(Client(StdioServerParameters(**SERVER)))
    await client.list_tools()

    async def calls(n: int) -> None:
        for _ in range(n):
            await client.call_tool(TOOL, ARGUMENTS)

    return {"nested": lambda n: lasting(n, lambda: calls(n))}


serve(jobs)
