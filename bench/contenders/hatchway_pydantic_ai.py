"""Hatchway in a Pydantic AI agent with a scripted model; `floor`: the same agent with one tool of its own, no code."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from serving import Job, actions, add_async, loop_gaps, nap, serve

from hatchway.adapters.pydantic_ai import CodeModeCapability

SANDBOX = sys.argv[1]


async def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Acts by the code it is prompted with, then says what came out."""
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse(parts=[TextPart(json.dumps(last.content))])
    return ModelResponse(parts=[ToolCallPart("execute_code", {"code": str(getattr(last, "content", ""))})])


async def execute_code(code: str) -> int:
    """Runs nothing."""
    return {"1 + 1": 2}.get(code, 3)


async def jobs(stack: AsyncExitStack) -> Mapping[str, Job]:
    if SANDBOX == "floor":
        agent = Agent(FunctionModel(model), tools=[execute_code])
    else:
        capability: Any = CodeModeCapability(sandbox=SANDBOX)
        stack.push_async_callback(capability.aclose)
        agent = Agent(FunctionModel(model), tools=[Tool(add_async, name="add"), nap], capabilities=[capability])

    async def run(code: str) -> Any:
        return json.loads((await agent.run(code)).output)

    found = actions(run, lambda a, b: f"await add({a}, {b})", lambda i: f"nap({i})")
    own = ("fresh", "action") if SANDBOX == "floor" else tuple(found)
    return {**{name: found[name] for name in own}, "gap": lambda n: loop_gaps(n, run)}


serve(jobs)
