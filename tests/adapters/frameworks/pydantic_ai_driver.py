"""Pydantic AI as the table drives it. As a program, it goes on with a stored run in a process of its own."""

import asyncio
import json
import runpy
import sys
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, Tool, ToolApproved, ToolDenied

from hatchway import NotRun, Ran
from hatchway.adapters.pydantic_ai import CodeModeCapability, decided

TOOLS = runpy.run_path(str(Path(__file__).parent / "effects.py"))


def _agent(code: str, sandbox: Any, settings: dict[str, Any]) -> tuple[Agent[None, Any], CodeModeCapability[None]]:
    def say(messages: list[Any], info: Any) -> ModelResponse:
        if any(isinstance(part, ToolReturnPart) for message in messages for part in message.parts):
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("execute_code", {"code": code}, tool_call_id="call-1")])

    capability = CodeModeCapability[None](sandbox=sandbox, **settings)
    tools = [Tool(TOOLS[name]) for name in ("read", "add", "boom")]
    agent = Agent(
        FunctionModel(say),
        tools=[*tools, Tool(TOOLS["wipe"], requires_approval=True)],
        capabilities=[capability],
        output_type=[str, DeferredToolRequests],
    )
    return agent, capability


def _told(result: Any) -> dict[str, Any]:
    """What came of a run, in JSON: what the model saw, or what waits, with all that is needed to go on."""
    if isinstance(result.output, DeferredToolRequests):
        [call] = result.output.approvals
        metadata = result.output.metadata[call.tool_call_id]
        state = {"messages": json.loads(result.all_messages_json()), "metadata": result.output.metadata}
        told = metadata["code_mode"]
        waiting = [(each["tool_name"], each["tool_args"]) for each in told["calls"]]
        return {"waiting": waiting, "in_doubt": told["in_doubt"], "state": state, "saw": None}
    [part] = [part for m in result.all_messages() for part in m.parts if isinstance(part, ToolReturnPart)]
    files = [each.identifier for each in (part.metadata or {}).get("code_mode", {}).get("files", ())]
    return {"saw": part.model_response_str(), "failed": part.outcome != "success", "waiting": [], "files": files}


async def act(sandbox: Any, code: str, **settings: Any) -> dict[str, Any]:
    agent, capability = _agent(code, sandbox, settings)
    try:
        return _told(await agent.run("go"))
    finally:
        if settings.get("journal") or "waits" not in settings:
            await capability.aclose()


async def go_on(sandbox: Any, code: str, state: dict[str, Any], answer: str, **settings: Any) -> dict[str, Any]:
    agent, capability = _agent(code, sandbox, settings)
    answers: dict[str, Any] = {
        "allow": True,
        "deny": ToolDenied("not today"),
        "edit": ToolApproved(override_args={"path": "/other"}),
    }
    settled: dict[str, Any] = {"ran": Ran("was wiped"), "not_run": NotRun()}
    if answer in settled:
        call = ToolCallPart("execute_code", {"code": code}, tool_call_id="call-1")
        results = decided(DeferredToolRequests(approvals=[call], metadata=state["metadata"]), settled[answer])
    else:
        results = DeferredToolResults(approvals={"call-1": answers[answer]}, metadata=state["metadata"])
    history = ModelMessagesTypeAdapter.validate_python(state["messages"])
    try:
        return _told(await agent.run(message_history=history, deferred_tool_results=results))
    finally:
        await capability.aclose()


if __name__ == "__main__":
    given = json.loads(sys.stdin.read())
    print(json.dumps(asyncio.run(go_on(**given))))  # noqa: T201
