"""One bare call of `add`, as each framework makes it for itself: what nested calls are compared with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from serving import add_async

Add = Callable[[int, int], Awaitable[Any]]


async def agent_framework() -> Add:
    """`FunctionTool.invoke`."""
    from agent_framework import tool

    made = tool(add_async, name="add")

    async def add(a: int, b: int) -> Any:
        return await made.invoke(arguments={"a": a, "b": b}, skip_parsing=True)

    return add


async def pydantic_ai() -> Add:
    """`ToolManager.handle_call`."""
    from pydantic_ai import RunContext, RunUsage, Tool
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.tool_manager import ToolManager
    from pydantic_ai.toolsets import FunctionToolset

    context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    manager = await ToolManager(FunctionToolset([Tool(add_async, name="add")])).for_run_step(context)

    async def add(a: int, b: int) -> Any:
        return await manager.handle_call(ToolCallPart("add", {"a": a, "b": b}), wrap_validation_errors=False)

    return add
