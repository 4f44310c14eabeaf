"""code_tool: one word says where a model's code runs."""

import json
from typing import Any

import pytest

from hatchway import Rule, tool
from hatchway.core.errors import CodeLimitError, InvalidSetting
from hatchway.core.events import AgentEvent, CodeExecutionOutputChunk, ToolOutput
from hatchway.core.limits import Limits
from hatchway.hosted import AnthropicAdapter, GeminiAdapter, HostedAdapter, OpenAIAdapter, code_tool
from hatchway.sandboxes.registry import availability
from hatchway.testing import ScriptedVendor

pytestmark = pytest.mark.anyio
ADAPTERS: dict[str, Any] = {"openai": OpenAIAdapter, "anthropic": AnthropicAdapter, "gemini": GeminiAdapter}


def asks(provider: str, code: str) -> dict[str, Any]:
    """A response that calls `execute_code`."""
    if provider == "openai":
        call = {"type": "function_call", "id": "f", "call_id": f"c{len(code)}", "name": "execute_code"}
        output = [{**call, "arguments": json.dumps({"code": code}), "status": "completed"}]
        return {"id": "r", "model": "m", "status": "completed", "output": output}
    if provider == "anthropic":
        block = {"type": "tool_use", "id": f"c{len(code)}", "name": "execute_code", "input": {"code": code}}
        return {"id": "m", "type": "message", "role": "assistant", "content": [block], "stop_reason": "tool_use"}
    part = {"functionCall": {"id": f"c{len(code)}", "name": "execute_code", "args": {"code": code}}}
    return {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}


def ends(provider: str) -> dict[str, Any]:
    """A response that is an answer."""
    if provider == "openai":
        part = {"type": "output_text", "text": "done", "annotations": []}
        output = [{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}]
        return {"id": "r", "model": "m", "status": "completed", "output": output}
    if provider == "anthropic":
        block = {"type": "text", "text": "done"}
        return {"id": "m", "type": "message", "role": "assistant", "content": [block], "stop_reason": "end_turn"}
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": "done"}]}, "finishReason": "STOP"}]}


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
    script = [asks(provider, "x = price('tea')\nprint(x)"), asks(provider, "print(x + 1)\nx"), ends(provider)]
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
    caller = {"type": "program", "caller_id": "p"}
    item = {"type": "function_call", "call_id": "x", "name": "pay", "arguments": '{"euro": 7}', "caller": caller}
    calls = {"id": "r", "model": "m", "status": "completed", "output": [item]}
    asked: list[Any] = []
    for settings, told in (
        ({"approve": lambda call: asked.append(call) or True}, "7"),
        ({"rules": [Rule("deny", "pay")]}, "a rule denies pay"),
    ):
        adapter, vendor = an_adapter("openai", [calls, ends("openai")], code_tool("openai", tools=[pay], **settings))
        async with adapter:
            await adapter.run("go")
        assert told in vendor.asked[1]["input"][-1]["output"]
    assert [call.kwargs for call in asked] == [{"euro": 7}]
    code = code_tool("openai", tools=[pay], approve=lambda call: True, limits=Limits(calls=1))
    twice = {**calls, "output": [item, {**item, "call_id": "y"}]}
    adapter, _ = an_adapter("openai", [twice], code)
    async with adapter:
        with pytest.raises(CodeLimitError):
            await adapter.run("go")


async def test_code_that_fails_and_calls_nobody_approved() -> None:
    script = [asks("openai", "1 / 0"), asks("openai", "print('a')\npay(1)"), ends("openai")]
    adapter, vendor = an_adapter("openai", script, code_tool("monty", tools=[pay]))
    async with adapter:
        await adapter.run("go")
    first, second = (item["output"] for item in vendor.asked[2]["input"] if item.get("type") == "function_call_output")
    assert "ZeroDivisionError" in first
    assert "nobody is here to approve it" in second
    script = [asks("openai", "print(pay(7))"), ends("openai")]
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
    with pytest.raises(InvalidSetting, match="not given like this"):
        code_tool("anthropic", memory="4g")
