"""Hatchway's agent in the jail, on a model of no latency: everything is asked about, and approved at once."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from agent_jobs import agent_jobs, scripted
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from serving import Job, serve

from hatchway.agent import Agent

CALLS = "for i in range(MANY):\n    add(i, 1)"


def add(a: int, b: int) -> int:
    """The smallest tool."""
    return a + b


async def model(messages: list[Any], info: Any) -> AsyncIterator[Any]:
    async for each in scripted(messages, info, lambda args, id: DeltaToolCall("execute_code", args, tool_call_id=id)):
        yield each


async def jobs(stack: AsyncExitStack) -> Mapping[str, Job]:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hatchway-bench-")))
    agent = Agent(FunctionModel(stream_function=model), system_prompt="Act.", tools=[add], working_dir=folder)
    await stack.enter_async_context(agent)
    return agent_jobs(agent.stream, agent.cancel, CALLS)


serve(jobs)
