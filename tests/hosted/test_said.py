"""What a vendor's model said, and when its code is told of: the answer alone, and the code before its calls."""

from typing import Any

import pytest

from hatchway import tool
from hatchway.core.events import AgentEvent, ApprovalRequest, CallFailed, Response
from hatchway.hosted import (
    AnthropicAdapter,
    GeminiAdapter,
    HostedCallMade,
    HostedCodeStarted,
    OpenAIAdapter,
    code_tool,
)
from hatchway.testing import CallsTool, CodeEnded, RanCode, ScriptedVendor, VendorSays
from hatchway.testing.vendor_client import asked

pytestmark = pytest.mark.anyio
ADAPTERS: dict[str, Any] = {"openai": OpenAIAdapter, "anthropic": AnthropicAdapter, "gemini": GeminiAdapter}
every_vendor = pytest.mark.parametrize("provider", list(ADAPTERS))
with_calls = pytest.mark.parametrize("provider", ["openai", "anthropic"])
both_ways = pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
RAN = RanCode("print(42)", "42\n")


def price(item: str) -> int:
    """What an item costs."""
    return 3


@both_ways
@every_vendor
async def test_words_on_the_way_are_no_part_of_the_answer(provider: Any, streams: bool) -> None:
    vendor = ScriptedVendor(provider, [VendorSays("I will compute it.", RAN, "It is 42.")])
    told: list[AgentEvent] = []
    async with ADAPTERS[provider]("m", client=vendor.client(), tools=[code_tool(provider)], on_event=told.append) as a:
        reply = await asked(a, streams=streams)
    assert (reply.text, reply.output) == ("It is 42.", "It is 42.")
    assert [event.content for event in told if isinstance(event, Response)] == ["I will compute it.", "It is 42."]


@every_vendor
async def test_a_schema_is_about_the_answer(provider: Any) -> None:
    vendor = ScriptedVendor(provider, [VendorSays("I will compute it.", RAN, '{"a": 42}')])
    async with ADAPTERS[provider]("m", client=vendor.client(), tools=[code_tool(provider)]) as adapter:
        assert (await adapter.run("go", output_schema={"type": "object"})).output == {"a": 42}


@every_vendor
async def test_a_model_that_ends_without_a_word_is_taken_at_what_it_said_before(provider: Any) -> None:
    vendor = ScriptedVendor(provider, [VendorSays("It is being drawn.", RAN)])
    async with ADAPTERS[provider]("m", client=vendor.client(), tools=[code_tool(provider)]) as adapter:
        assert (await adapter.run("go")).text == "It is being drawn."


async def test_commentary_at_openai_is_no_answer() -> None:
    aside = {
        "type": "message", "id": "m0", "role": "assistant", "status": "completed", "phase": "commentary",
        "content": [{"type": "output_text", "text": "Let me see.", "annotations": []}],
    }  # fmt: skip
    vendor = ScriptedVendor("openai", [VendorSays(aside, "It is 42.")])
    async with OpenAIAdapter("m", client=vendor.client()) as openai:
        assert (await openai.run("go")).text == "It is 42."


@both_ways
@with_calls
async def test_who_decides_about_a_call_has_seen_the_code_that_makes_it(provider: Any, streams: bool) -> None:
    code = "the code that pays"
    call = CallsTool("price", {"item": "tea"}, by=code)
    vendor = ScriptedVendor(provider, [VendorSays(call), VendorSays(CodeEnded("3"), "Done.")])
    told: list[AgentEvent] = []
    tools = [code_tool(provider, tools=[tool(price, approval="ask")], approve=None if streams else lambda _: True)]
    async with ADAPTERS[provider]("m", client=vendor.client(), tools=tools, on_event=told.append) as adapter:
        if streams:
            async for event in adapter.stream("go"):
                if isinstance(event, ApprovalRequest):
                    event.approve(True)
        else:
            await adapter.run("go")
    begun = [event for event in told if isinstance(event, HostedCodeStarted | HostedCallMade)]
    assert [type(event) for event in begun] == [HostedCodeStarted, HostedCallMade]  # once, and first
    assert isinstance(begun[0], HostedCodeStarted)
    assert begun[0].call.code == code


@with_calls
async def test_code_cannot_call_what_was_offered_to_the_model_alone(provider: Any) -> None:
    ran: list[str] = []

    def erase(name: str) -> str:
        """Erase something."""
        ran.append(name)
        return "erased"

    call = CallsTool("erase", {"name": "all"}, by="erase()")
    vendor = ScriptedVendor(provider, [VendorSays(call), VendorSays(CodeEnded(""), "Done.")])
    told: list[AgentEvent] = []
    tools = [code_tool(provider, tools=[price]), erase]
    async with ADAPTERS[provider]("m", client=vendor.client(), tools=tools, on_event=told.append) as adapter:
        assert (await adapter.run("go")).text == "Done."
    assert ran == []
    (refused,) = [event for event in told if isinstance(event, CallFailed)]
    assert refused.error == "erase is offered to the model, not to its code"
    assert "erase is offered to the model, not to its code" in str(vendor.asked[1])
