"""Where an agent's code runs, by one word, in each framework: the vendors' SDKs are real, the vendors say a script."""

import json
from typing import Any

import pytest
from agent_framework import Agent as FrameworkAgent
from agent_framework.openai import OpenAIChatClient
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models import Gemini
from google.adk.runners import InMemoryRunner
from pydantic_ai import Agent
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import NativeToolReturnPart, ToolReturnPart
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

from hatchway.adapters.agent_framework import JailExecuteCodeTool, code_tool
from hatchway.adapters.google_adk import HatchwayCodeExecutor, code_executor
from hatchway.adapters.pydantic_ai import CodeModeCapability, code_capability
from hatchway.core.errors import InvalidSetting
from hatchway.testing import CallsTool, RanCode, ScriptedVendor, VendorSays

pytestmark = pytest.mark.anyio
CODE = "print(6 * 7)"


AT_VENDOR = VendorSays(RanCode(CODE, "42\n"), "42 it is")
CALLS = VendorSays(CallsTool("execute_code", {"code": CODE}, call_id="c"))
ENDS = VendorSays("42 it is")
VENDORS = ("openai", "anthropic", "gemini")


def a_model(vendor: ScriptedVendor) -> Any:
    client = vendor.client()
    makers: dict[str, Any] = {
        "openai": lambda: OpenAIResponsesModel("m", provider=OpenAIProvider(openai_client=client)),
        "anthropic": lambda: AnthropicModel("claude-sonnet-5", provider=AnthropicProvider(anthropic_client=client)),
        "gemini": lambda: GoogleModel("gemini-2.5-flash", provider=GoogleProvider(client=client)),
    }
    return makers[vendor.provider]()


@pytest.mark.parametrize("where", ["openai", "anthropic", "gemini", "monty"])
async def test_pydantic_ai(where: Any) -> None:
    vendor = ScriptedVendor(*((where, [AT_VENDOR]) if where in VENDORS else ("openai", [CALLS, ENDS])))
    capability = code_capability(where)
    result = await Agent(a_model(vendor), capabilities=[capability]).run("What is 6 * 7?")
    assert result.output == "42 it is"
    returns = [
        part
        for message in result.all_messages()
        for part in message.parts
        if isinstance(part, NativeToolReturnPart | ToolReturnPart)
    ]
    assert [type(part) for part in returns] == [ToolReturnPart if where == "monty" else NativeToolReturnPart]
    assert "42" in str(returns[0].content)
    words = {"openai": "code_interpreter", "anthropic": "code_execution", "gemini": "codeExecution"}
    assert words.get(where, "execute_code") in json.dumps(vendor.asked[0]["tools"])
    if isinstance(capability, CodeModeCapability):
        await capability.aclose()


async def test_pydantic_ai_with_what_does_not_fit() -> None:
    with pytest.raises(UserError, match="code at openai is run by a model of openai, and claude-sonnet-5 is one of"):
        await Agent(a_model(ScriptedVendor("anthropic")), capabilities=[code_capability("openai")]).run("go")
    with pytest.raises(InvalidSetting, match="takes no journal"):
        code_capability("openai", journal="x")
    with pytest.raises(InvalidSetting, match="there is no sandbox 'moon'"):
        await Agent(TestModel(), capabilities=[code_capability("moon")]).run("go")


@pytest.mark.parametrize("where", ["openai", "monty"])
async def test_agent_framework(where: str) -> None:
    vendor = ScriptedVendor("openai", [AT_VENDOR] if where == "openai" else [CALLS, ENDS])
    client = OpenAIChatClient(model="m", async_client=vendor.client())
    agent = FrameworkAgent(client=client, tools=[code_tool(where, client=client)])
    reply = await agent.run("What is 6 * 7?")
    assert reply.text == "42 it is"
    kinds = [tool["type"] for tool in vendor.asked[0]["tools"]]
    assert kinds == ["code_interpreter" if where == "openai" else "function"]
    if where == "monty":
        assert "42" in vendor.asked[1]["input"][-1]["output"]


def test_agent_framework_with_what_does_not_fit() -> None:
    client = OpenAIChatClient(model="m", async_client=ScriptedVendor("openai").client())
    with pytest.raises(InvalidSetting, match=r"needs a chat client of anthropic .* here is OpenAIChatClient"):
        code_tool("anthropic", client=client)
    with pytest.raises(InvalidSetting, match="here is none"):
        code_tool("openai")
    with pytest.raises(InvalidSetting, match="there is no place 'moon'"):
        code_tool("moon")
    assert isinstance(code_tool("jail"), JailExecuteCodeTool)


@pytest.mark.parametrize("where", ["gemini", "monty"])
async def test_google_adk(where: str) -> None:
    fenced = VendorSays(f"```python\n{CODE}\n```")
    vendor = ScriptedVendor("gemini", [AT_VENDOR] if where == "gemini" else [fenced, ENDS])

    class Scripted(Gemini):
        @property
        def api_client(self) -> Any:  # type: ignore[override]
            return vendor.client()

    executor = code_executor(where)
    agent = LlmAgent(name="coder", model=Scripted(model="gemini-2.5-flash"), code_executor=executor)
    events = await InMemoryRunner(app=App(name="demo", root_agent=agent)).run_debug("What is 6 * 7?", quiet=True)
    parts = [part for event in events for part in (event.content.parts if event.content else None) or []]
    results = [part.code_execution_result.output for part in parts if part.code_execution_result]
    assert "42" in str(results[0])
    assert parts[-1].text == "42 it is"
    assert ("codeExecution" in json.dumps(vendor.asked[0])) is (where == "gemini")
    if isinstance(executor, HatchwayCodeExecutor):
        executor.close()


def test_google_adk_with_what_does_not_fit() -> None:
    with pytest.raises(InvalidSetting, match="ADK has no code at openai"):
        code_executor("openai")
    with pytest.raises(InvalidSetting, match="takes no tools"):
        code_executor("gemini", tools=())
    with pytest.raises(InvalidSetting, match="there is no sandbox 'moon'"):
        code_executor("moon")
