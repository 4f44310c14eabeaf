"""What a stream tells while the vendor's code runs, and what its code is given back."""

import json
from contextlib import nullcontext
from typing import Any, get_args

import pytest
from openai.types.responses import ResponseStreamEvent

from hatchway import tool
from hatchway.core.errors import TransportError
from hatchway.core.events import AgentEvent
from hatchway.hosted import (
    AnthropicAdapter,
    GeminiAdapter,
    HostedCodeChunk,
    HostedCodeEnded,
    HostedCodeStarted,
    OpenAIAdapter,
    UnknownItem,
    code_tool,
)
from hatchway.hosted.openai.stream import OpenAIFold
from hatchway.testing import CallsTool, RanCode, ScriptedVendor, VendorReply, VendorSays
from hatchway.testing.vendor_client import asked
from hatchway.testing.vendor_streams import streamed

pytestmark = pytest.mark.anyio
ADAPTERS: dict[str, Any] = {"openai": OpenAIAdapter, "anthropic": AnthropicAdapter, "gemini": GeminiAdapter}
RUNS = {"openai": "code_interpreter_call.interpreting", "anthropic": "content_block_stop", "gemini": "executableCode"}
"""What stands in the event after which the code runs."""


@pytest.mark.parametrize("provider", list(ADAPTERS))
async def test_code_is_told_when_it_runs_and_not_only_when_it_ended(provider: Any) -> None:
    events = streamed(provider, VendorSays(RanCode("print(1)", "1\n"), "one").response(provider))
    place = next(number for number, event in enumerate(events) if RUNS[provider] in json.dumps(event))
    for kept, is_over in ((events[: place + 1], False), (events, True)):
        vendor = ScriptedVendor(provider, [VendorReply(body=kept)])
        async with ADAPTERS[provider]("m", client=vendor.client(), tools=[code_tool(provider)]) as adapter:
            told: list[AgentEvent] = []
            with nullcontext() if is_over else pytest.raises(TransportError, match="the stream ended before"):
                async for event in adapter.stream("go"):
                    told.append(event)
        code = [event for event in told if isinstance(event, HostedCodeStarted | HostedCodeEnded)]
        assert [type(event) for event in code] == [HostedCodeStarted, HostedCodeEnded][: 1 + is_over]
        begun = code[0]
        assert isinstance(begun, HostedCodeStarted)
        assert (begun.call.code, begun.call.provider) == ("print(1)", provider)
        chunks = [event.text for event in told if isinstance(event, HostedCodeChunk)]
        assert "".join(chunks) == "print(1)"
        if is_over:
            assert isinstance(code[1], HostedCodeEnded)
            assert code[1].result.call.call_id == begun.call.call_id


@pytest.mark.parametrize(
    ("provider", "given"), [("openai", '"tea for 2"'), ("anthropic", "tea for 2"), ("gemini", "tea for 2")]
)
async def test_text_is_given_back_as_json_only_where_its_schema_was_told(provider: Any, given: str) -> None:
    @tool
    def order(many: int) -> str:
        """Order tea."""
        return f"tea for {many}"

    vendor = ScriptedVendor(provider, [VendorSays(CallsTool("order", {"many": 2})), VendorSays("done")])
    async with ADAPTERS[provider]("m", client=vendor.client(), tools=[order]) as adapter:
        await adapter.run("go")
    first, second = (json.dumps(body) for body in vendor.asked)
    assert ('"output_schema": {"type": "string"' in first) == (provider == "openai")
    assert f": {json.dumps(given)}" in second


def test_every_event_of_today_is_known() -> None:
    (union, *_) = get_args(ResponseStreamEvent)
    kinds = {get_args(each.model_fields["type"].annotation)[0] for each in get_args(union)} - {"error"}
    fold = OpenAIFold()
    assert not [kind for kind in kinds if any(isinstance(fact, UnknownItem) for fact in fold.feed({"type": kind}))]


async def test_an_event_of_tomorrow_is_told_and_warned_about_once() -> None:
    events = streamed("openai", VendorSays("one").response("openai"))
    strange = {"type": "response.hologram.delta", "sequence_number": 1, "delta": "x"}
    client = ScriptedVendor("openai", [[events[0], strange, strange, *events[1:]]] * 2).client()
    told: list[AgentEvent] = []
    async with OpenAIAdapter("m", client=client, on_event=told.append) as adapter:
        with pytest.warns(UserWarning, match="^openai sent 'response.hologram.delta': it is left out of the answer$"):
            assert (await asked(adapter, streams=True)).text == "one"
        assert (await asked(adapter, streams=True)).text == "one"  # warnings are errors: it is not warned again
    assert [event.kind for event in told if isinstance(event, UnknownItem)] == ["response.hologram.delta"] * 4


async def test_a_delta_of_tomorrow_is_told_and_warned_about_once() -> None:
    events = streamed("anthropic", VendorSays("one").response("anthropic"))
    strange = {"type": "content_block_delta", "index": 0, "delta": {"type": "hologram_delta", "x": 1}}
    place = next(number for number, event in enumerate(events) if event["type"] == "content_block_delta")
    script = [[*events[:place], strange, strange, *events[place:]]] * 2
    client = ScriptedVendor("anthropic", script).client()
    told: list[AgentEvent] = []
    async with AnthropicAdapter("m", client=client, on_event=told.append) as adapter:
        with pytest.warns(UserWarning, match="^anthropic sent 'hologram_delta': it is left out of the answer$"):
            assert (await asked(adapter, streams=True)).text == "one"
        assert (await asked(adapter, streams=True)).text == "one"  # warnings are errors: it is not warned again
    assert [event.kind for event in told if isinstance(event, UnknownItem)] == ["hologram_delta"] * 4
