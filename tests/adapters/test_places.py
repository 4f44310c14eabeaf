"""Where an agent's code runs, by one word, in each framework: the vendors' SDKs are real, the vendors say a script."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent as FrameworkAgent
from agent_framework import Message
from agent_framework.openai import OpenAIChatClient
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models import Gemini
from google.adk.runners import InMemoryRunner
from pydantic_ai import Agent
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessagesTypeAdapter, NativeToolReturnPart, ToolReturnPart
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

from hatchway import Allow, CallContext, Deny, Edit, tool
from hatchway.adapters.agent_framework import JailExecuteCodeTool, code_tool
from hatchway.adapters.google_adk import HatchwayCodeExecutor, code_executor
from hatchway.adapters.pydantic_ai import CodeModeCapability, code_capability
from hatchway.core.errors import InvalidSetting
from hatchway.hosted import code_tool as hosted_code_tool
from hatchway.sandboxes.registry import sandbox_class
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


@pytest.mark.parametrize("model", VENDORS)
@pytest.mark.parametrize("where", ["", "monty", "jail"])
async def test_pydantic_ai(where: str, model: Any) -> None:
    where = where or model
    vendor = ScriptedVendor(model, [AT_VENDOR] if where in VENDORS else [CALLS, ENDS])
    capability = code_capability(where)
    result = await Agent(a_model(vendor), capabilities=[capability]).run("What is 6 * 7?")
    assert result.output == "42 it is"
    returns = [
        part
        for message in result.all_messages()
        for part in message.parts
        if isinstance(part, NativeToolReturnPart | ToolReturnPart)
    ]
    assert [type(part) for part in returns] == [NativeToolReturnPart if where in VENDORS else ToolReturnPart]
    assert "42" in str(returns[0].content)
    words = {"openai": "code_interpreter", "anthropic": "code_execution", "gemini": "codeExecution"}
    assert words.get(where, "execute_code") in json.dumps(vendor.asked[0]["tools"])
    if isinstance(capability, CodeModeCapability):
        await capability.aclose()


@pytest.mark.parametrize("model", VENDORS)
async def test_files_of_an_action_are_for_the_application_and_pictures_for_the_model(
    model: Any, tmp_path: Path
) -> None:
    made = {"a.csv": b"1,2", "b.bin": bytes(range(256)), "c.png": b"\x89PNG\r\n\x1a\n", "d.svg": b"<svg/>"}
    code = f"from pathlib import Path\nfor name, data in {made!r}.items():\n    Path('/output', name).write_bytes(data)"
    vendor = ScriptedVendor(model, [VendorSays(CallsTool("execute_code", {"code": code}, call_id="c")), ENDS])
    async with sandbox_class("monty")(workspace_root=tmp_path) as sandbox:
        capability = CodeModeCapability[Any](sandbox=sandbox)
        result = await Agent(a_model(vendor), capabilities=[capability]).run("go")
        await capability.aclose()
    (part,) = [each for message in result.all_messages() for each in message.parts if isinstance(each, ToolReturnPart)]
    assert part.content == {"files": "a.csv, b.bin, c.png, d.svg"}
    assert {file.identifier: file.data for file in part.metadata["code_mode"]["files"]} == made
    told = json.dumps(vendor.asked[1])
    seen = [name for name, data in made.items() if base64.b64encode(data).decode() in told]
    assert seen == ["c.png"]
    assert ModelMessagesTypeAdapter.validate_json(result.all_messages_json())  # bytes and all


async def test_pydantic_ai_with_what_does_not_fit() -> None:
    with pytest.raises(UserError, match="code at openai is run by a model of openai, and claude-sonnet-5 is one of"):
        await Agent(a_model(ScriptedVendor("anthropic")), capabilities=[code_capability("openai")]).run("go")
    with pytest.raises(InvalidSetting, match="takes no journal") as told:
        code_capability("openai", journal="x")
    assert told.value.hint == "it takes files"
    with pytest.raises(InvalidSetting, match="Pydantic AI's code at gemini takes no files"):
        code_capability("gemini", files=[])  # Pydantic AI would drop them without a word
    with pytest.raises(InvalidSetting, match="CodeModeCapability takes no jurnal"):
        code_capability("jail", jurnal="x")


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("where", ["openai", "monty"])
async def test_agent_framework(where: str, streams: bool) -> None:
    vendor = ScriptedVendor("openai", [AT_VENDOR] if where == "openai" else [CALLS, ENDS])
    client = OpenAIChatClient(model="m", async_client=vendor.client())
    agent = FrameworkAgent(client=client, tools=[code_tool(where, client=client)])
    if streams:
        said = "".join([update.text async for update in agent.run("What is 6 * 7?", stream=True)])
    else:
        said = (await agent.run("What is 6 * 7?")).text
    assert said == "42 it is"
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
    with pytest.raises(InvalidSetting, match="OpenAIChatClient's code interpreter takes no journal") as told:
        code_tool("openai", client=client, journal="x")
    assert told.value.hint == "it takes container, file_ids"
    with pytest.raises(InvalidSetting, match="JailExecuteCodeTool takes no jurnal"):
        code_tool("jail", jurnal="x")
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
    with pytest.raises(InvalidSetting, match="HatchwayCodeExecutor takes no journal"):
        code_executor("jail", journal="x")
    with pytest.raises(InvalidSetting, match=r"^state: Input should be 'none', 'invocation' or 'session'"):
        code_executor("jail", state="for ever")


@pytest.mark.parametrize("where", ["moon", "", 3])
@pytest.mark.parametrize(
    ("make", "vendors", "here"),
    [
        (code_capability, "openai, anthropic, gemini", "auto, jail, container, hyperlight, monty, process"),
        (code_executor, "gemini", "auto, jail, container, hyperlight, monty, process"),
        (code_tool, "openai, anthropic, gemini", "jail, monty, container, hyperlight"),
        (hosted_code_tool, "openai, anthropic, gemini", "auto, jail, container, hyperlight, monty, process"),
    ],
    ids=["pydantic-ai", "adk", "agent-framework", "hosted"],
)
def test_a_place_nobody_knows_is_told_with_all_there_are(make: Any, vendors: str, here: str, where: Any) -> None:
    with pytest.raises(InvalidSetting) as told:
        make(where)
    assert told.value.message == f"there is no place {where!r} for code to run"
    assert told.value.hint == f"there are {vendors}, {here}"


PAYS = "try:\n    x = pay(3)\nexcept RuntimeError as e:\n    x = f'left alone: {e}'\nprint(x)"


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("where", ["monty", "jail"])
@pytest.mark.parametrize(
    ("answer", "paid", "printed"),
    [(Allow(), [3], "paid 3"), (Deny("no"), [], "no"), (Edit({"euro": 9}), [9], "paid 9")],
)
async def test_agent_framework_asks_about_a_tool_of_ours(
    where: str, streams: bool, answer: Any, paid: list[int], printed: str, tmp_path: Path
) -> None:
    done: list[int] = []
    keys: list[str] = []

    @tool(approval="ask", idempotent=True)
    def pay(euro: int, call: CallContext) -> str:
        """Pay somebody."""
        done.append(euro)
        keys.append(call.idempotency_key)
        return f"paid {euro}"

    vendor = ScriptedVendor("openai", [VendorSays(CallsTool("execute_code", {"code": PAYS}, call_id="c")), ENDS])
    client = OpenAIChatClient(model="m", async_client=vendor.client())

    def made() -> tuple[Any, FrameworkAgent[Any]]:
        here = code_tool(where, tools=pay, journal=tmp_path / "j.db", per_call_approval=True)
        return here, FrameworkAgent(client=client, tools=[here], middleware=[here.middleware])

    here, agent = made()
    session = agent.create_session()
    if streams:
        stream = agent.run("go", session=session, stream=True)
        assert [update async for update in stream]
        reply = await stream.get_final_response()
    else:
        reply = await agent.run("go", session=session)
    (request,) = reply.user_input_requests
    await here.aclose()
    here, agent = made()  # as another process would
    reply = await agent.run(Message("user", [here.decide(request, answer, session=session)]), session=session)
    assert (reply.text, done, len(keys)) == ("42 it is", paid, len(paid))
    assert printed in vendor.asked[1]["input"][-1]["output"]
    await here.aclose()


async def test_agent_framework_refuses_a_tool_of_ours_that_is_switched_off() -> None:
    @tool(approval="deny")
    def pay(euro: int) -> str:
        """Pay somebody."""
        raise AssertionError

    vendor = ScriptedVendor("openai", [VendorSays(CallsTool("execute_code", {"code": PAYS}, call_id="c")), ENDS])
    client = OpenAIChatClient(model="m", async_client=vendor.client())
    here = code_tool("monty", tools=[pay])
    await FrameworkAgent(client=client, tools=[here]).run("go")
    assert "the tool pay is switched off" in vendor.asked[1]["input"][-1]["output"]
    await here.aclose()
