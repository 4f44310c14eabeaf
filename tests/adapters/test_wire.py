"""What the vendors' own clients put on the wire: the model must be able to read how its code failed."""

import json
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI

from hatchway.adapters.agent_framework import MontyCodeActProvider
from hatchway.adapters.pydantic_ai import CodeModeCapability
from hatchway.core.limits import Limits

pytestmark = pytest.mark.anyio
FAILURES = {
    "print('so far')\n1 / 0": "ZeroDivisionError: division by zero",
    "print('so far')\nboom()": "LookupError: nothing there",
    "print('so far')\nwhile True: pass": "1 s",
}
"""Code, and what the model must be told of its end: an error of its own, one of a tool, and a limit."""


def boom() -> str:
    """Always fails."""
    raise LookupError("nothing there")


class Wire:
    """An OpenAI that asks for one action, then is content. Keeps what it was sent."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.sent: list[dict[str, Any]] = []

    def client(self) -> AsyncOpenAI:
        transport = httpx2.MockTransport(self._answer)
        return AsyncOpenAI(api_key="none", http_client=httpx2.AsyncClient(transport=transport), max_retries=0)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(json.loads(request.content))
        first = len(self.sent) == 1
        chat = request.url.path.endswith("/chat/completions")
        return httpx2.Response(200, json=_completion(first, self.code) if chat else _response(first, self.code))


def _completion(first: bool, code: str) -> dict[str, Any]:
    function = {"name": "execute_code", "arguments": json.dumps({"code": code})}
    call = {"id": "c1", "type": "function", "function": function}
    message = {"role": "assistant", "content": None if first else "done"} | ({"tool_calls": [call]} if first else {})
    choice = {"index": 0, "finish_reason": "tool_calls" if first else "stop", "message": message}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "gpt-x", "choices": [choice]}


def _response(first: bool, code: str) -> dict[str, Any]:
    call = {
        "type": "function_call", "id": "fc_1", "call_id": "c1", "name": "execute_code",
        "arguments": json.dumps({"code": code}), "status": "completed",
    }  # fmt: skip
    text = {"type": "output_text", "text": "done", "annotations": []}
    said = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]}
    return {
        "id": "r1", "object": "response", "created_at": 1, "model": "gpt-x", "status": "completed",
        "output": [call if first else said], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }  # fmt: skip


def _told(sent: dict[str, Any]) -> str:
    """The tool result the model gets."""
    if "messages" in sent:
        [message] = [message for message in sent["messages"] if message["role"] == "tool"]
        return str(message["content"])
    [item] = [item for item in sent["input"] if item.get("type") == "function_call_output"]
    return str(item["output"])


@pytest.mark.parametrize("form", ["OpenAIChatClient", "OpenAIChatCompletionClient"])
@pytest.mark.parametrize("result_form", ["flat", "code_interpreter"])
@pytest.mark.parametrize("code", FAILURES, ids=["code", "tool", "limit"])
async def test_agent_framework(form: str, result_form: Any, code: str) -> None:
    from agent_framework import Agent, openai

    wire = Wire(code)
    provider = MontyCodeActProvider(tools=[boom], result_form=result_form, limits=Limits(wall_seconds=1))
    client = getattr(openai, form)(model="gpt-x", async_client=wire.client())
    agent = Agent(client=client, context_providers=[provider])
    await agent.run("go", session=agent.create_session())
    await provider.aclose()
    assert FAILURES[code] in _told(wire.sent[1])
    assert "so far" in _told(wire.sent[1])


@pytest.mark.parametrize("form", ["OpenAIChatModel", "OpenAIResponsesModel"])
@pytest.mark.parametrize("code", FAILURES, ids=["code", "tool", "limit"])
async def test_pydantic_ai(form: str, code: str) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models import openai
    from pydantic_ai.providers.openai import OpenAIProvider

    wire, capability = Wire(code), CodeModeCapability[None](sandbox="monty", limits=Limits(wall_seconds=1))
    model = getattr(openai, form)("gpt-x", provider=OpenAIProvider(openai_client=wire.client()))
    await Agent(model, tools=[boom], capabilities=[capability]).run("go")
    await capability.aclose()
    assert FAILURES[code] in _told(wire.sent[1])
    assert "so far" in _told(wire.sent[1])
