"""Pydantic AI harness' CodeMode in an agent with a scripted model: a new Monty pool per agent run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_harness import CodeMode
from serving import Job, actions, add_async, nap, serve


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Acts by the code it is prompted with, then says what came out."""
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse(parts=[TextPart(json.dumps(last.content))])
    return ModelResponse(parts=[ToolCallPart("run_code", {"code": str(getattr(last, "content", ""))})])


async def jobs(stack: AsyncExitStack) -> Mapping[str, Job]:
    limits: Any = {"max_suspensions": 10**9}
    code_mode: Any = CodeMode(max_tool_calls=10**6, resource_limits=limits)
    agent = Agent(FunctionModel(model), tools=[Tool(add_async, name="add"), nap], capabilities=[code_mode])

    async def run(code: str) -> Any:
        return json.loads((await agent.run(code)).output)

    return actions(run, lambda a, b: f"await add(a={a}, b={b})", lambda i: f"nap(i={i})")


serve(jobs)
