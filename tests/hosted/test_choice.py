"""code_tool: one word says where a model's code runs."""

import json
from dataclasses import replace
from typing import Any

import pytest

from hatchway import Rule, tool
from hatchway.core.errors import CodeLimitError, InvalidSetting
from hatchway.core.events import AgentEvent, CodeExecutionOutputChunk, ToolOutput
from hatchway.core.limits import Limits
from hatchway.hosted import AnthropicAdapter, GeminiAdapter, HostedAdapter, OpenAIAdapter, code_tool
from hatchway.sandboxes.registry import availability
from hatchway.testing import CallsTool, ScriptedVendor, VendorSays

pytestmark = pytest.mark.anyio
ADAPTERS: dict[str, Any] = {"openai": OpenAIAdapter, "anthropic": AnthropicAdapter, "gemini": GeminiAdapter}


def asks(code: str) -> VendorSays:
    """A response that calls `execute_code`."""
    return VendorSays(CallsTool("execute_code", {"code": code}, call_id=f"c{len(code)}"))


ENDS = VendorSays("done")


@tool
def price(item: str) -> int:
    """What an item costs."""
    return len(item)


@tool(approval="ask")
def pay(euro: int) -> int:
    """Pay."""
    return euro


def an_adapter(provider: Any, script: list[Any], code: Any, **settings: Any) -> tuple[HostedAdapter, ScriptedVendor]:
    vendor = ScriptedVendor(provider, script)
    return ADAPTERS[provider]("m", client=vendor.client(), tools=[code], retries=0, **settings), vendor


@pytest.mark.parametrize("where", ["monty", "jail"])
@pytest.mark.parametrize("provider", list(ADAPTERS))
async def test_any_vendors_model_with_a_sandbox_of_ours(provider: str, where: str) -> None:
    if availability(where).state != "usable":
        pytest.skip(f"{where}: {availability(where).reason}")
    events: list[AgentEvent] = []
    script = [asks("x = price('tea')\nprint(x)"), asks("print(x + 1)\nx"), ENDS]
    code = code_tool(where, tools=[price])
    adapter, vendor = an_adapter(provider, script, code, on_event=events.append)
    async with adapter:
        assert (await adapter.run("go")).text == "done"
    assert [event.text for event in events if isinstance(event, CodeExecutionOutputChunk)] == ["3\n", "4\n"]
    outputs = [event for event in events if isinstance(event, ToolOutput)]
    assert [event.tool_name for event in outputs] == ["price", "execute_code", "execute_code"]
    assert outputs[1].content["output"] == "3\n"
    assert outputs[2].content["tier"] in ("language", "namespaces", "landlock")
    assert "def price(item: str) -> int" in json.dumps(vendor.asked[0]["tools"])
    assert "4" in json.dumps(vendor.asked[2])


async def test_one_gate_for_one_word() -> None:
    """What `code_tool` is told about calls holds at a vendor as it does here."""
    call = CallsTool("pay", {"euro": 7}, call_id="x", by="await pay({euro: 7})")
    asked: list[Any] = []
    for settings, told in (
        ({"approve": lambda call: asked.append(call) or True}, "7"),
        ({"rules": [Rule("deny", "pay")]}, "a rule denies pay"),
    ):
        adapter, vendor = an_adapter("openai", [VendorSays(call), ENDS], code_tool("openai", tools=[pay], **settings))
        async with adapter:
            await adapter.run("go")
        assert told in vendor.asked[1]["input"][-1]["output"]
    assert [call.kwargs for call in asked] == [{"euro": 7}]
    code = code_tool("openai", tools=[pay], approve=lambda call: True, limits=Limits(calls=1))
    adapter, _ = an_adapter("openai", [VendorSays(call, replace(call, call_id="y"))], code)
    async with adapter:
        with pytest.raises(CodeLimitError):
            await adapter.run("go")


async def test_code_that_fails_and_calls_nobody_approved() -> None:
    script = [asks("1 / 0"), asks("print('a')\npay(1)"), ENDS]
    adapter, vendor = an_adapter("openai", script, code_tool("monty", tools=[pay]))
    async with adapter:
        await adapter.run("go")
    first, second = (item["output"] for item in vendor.asked[2]["input"] if item.get("type") == "function_call_output")
    assert "ZeroDivisionError" in first
    assert "nobody is here to approve it" in second
    script = [asks("print(pay(7))"), ENDS]
    code = code_tool("monty", tools=[pay], approve=lambda call: call.kwargs["euro"] == 7)
    adapter, vendor = an_adapter("openai", script, code)
    async with adapter:
        await adapter.run("go")
    assert "7" in vendor.asked[1]["input"][-1]["output"]


def test_places_that_are_none() -> None:
    with pytest.raises(InvalidSetting, match="there is no place 'moon' for code to run"):
        code_tool("moon")
    with pytest.raises(InvalidSetting, match="a sandbox takes no container"):
        code_tool("monty", container="c")
    code = code_tool("openai", approve=lambda call: True)
    with pytest.raises(InvalidSetting, match="approve is given twice"):
        an_adapter("openai", [], code, approve=lambda call: True)
    with pytest.raises(InvalidSetting, match="the code tool of anthropic takes no memory"):
        code_tool("anthropic", memory="4g")
