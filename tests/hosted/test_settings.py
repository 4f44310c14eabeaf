"""Settings in the words of each SDK: those it takes arrive, all others are refused before any request."""

from typing import Any

import pytest

from hatchway.core.errors import InvalidSetting
from hatchway.hosted import AnthropicAdapter, GeminiAdapter, OpenAIAdapter, code_tool
from hatchway.testing import ScriptedVendor, VendorSays
from hatchway.testing.vendor_client import asked

pytestmark = pytest.mark.anyio
ADAPTERS: dict[str, Any] = {"openai": OpenAIAdapter, "anthropic": AnthropicAdapter, "gemini": GeminiAdapter}
every_vendor = pytest.mark.parametrize("provider", list(ADAPTERS))
SEARCHES: dict[str, Any] = {
    "openai": {"type": "web_search"},
    "anthropic": {"type": "web_search_20250305", "name": "web_search"},
    "gemini": {"google_search": {}},
}


async def sent(provider: Any, **settings: Any) -> dict[str, Any]:
    """What a vendor is asked with these settings."""
    vendor = ScriptedVendor(provider, [VendorSays("ok")])
    async with ADAPTERS[provider]("m", client=vendor.client(), tools=[code_tool(provider)], settings=settings) as a:
        await a.run("go")
    return vendor.asked[0]


@every_vendor
async def test_tools_of_the_vendor_are_offered_beside_its_code(provider: Any) -> None:
    tools = (await sent(provider, tools=[SEARCHES[provider]]))["tools"]
    assert len(tools) == 2
    assert tools[1] == ({"googleSearch": {}} if provider == "gemini" else SEARCHES[provider])


@pytest.mark.parametrize(
    ("provider", "word", "hint"),
    [
        ("openai", "stream", "adapter.stream(prompt)"),
        ("openai", "input", "run(prompt)"),
        ("openai", "previous_response_id", "leave it out: run(session=…) keeps what was said"),
        ("openai", "tool_choice", "run(prompt, tool_choice=…)"),
        ("openai", "background", "leave it out: run() waits, stream() tells"),
        ("anthropic", "messages", "run(prompt)"),
        ("anthropic", "system", "AnthropicAdapter(…, instructions=…)"),
        ("anthropic", "max_tokens", "AnthropicAdapter(…, max_output_tokens=…)"),
        ("anthropic", "container", "code_tool('anthropic', container=…, skills=…)"),
        ("gemini", "system_instruction", "GeminiAdapter(…, instructions=…)"),
        ("gemini", "http_options", "GeminiAdapter(…, client=genai.Client(http_options=…))"),
    ],
)
def test_what_the_adapter_writes_itself_is_refused(provider: Any, word: str, hint: str) -> None:
    with pytest.raises(InvalidSetting, match=f"settings: {word!r} is written by the adapter") as caught:
        ADAPTERS[provider]("m", client=ScriptedVendor(provider).client(), settings={word: "x"})
    assert caught.value.hint == hint


@every_vendor
def test_a_word_the_sdk_does_not_know(provider: Any) -> None:
    client = ScriptedVendor(provider).client()
    for word, hint in (("temprature", "did you mean 'temperature'?"), ("zzz", "leave it out; extra_body")):
        with pytest.raises(InvalidSetting, match=f"settings: the SDK's call takes no '{word}'") as caught:
            ADAPTERS[provider]("m", client=client, settings={word: 1})
        assert caught.value.hint.startswith(hint)


async def test_settings_of_gemini_stand_where_the_api_wants_them() -> None:
    safety = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}]
    body = await sent(
        "gemini", temperature=0.5, topP=0.3, thinking_config={"include_thoughts": True}, safety_settings=safety
    )
    assert body["generationConfig"] == {"temperature": 0.5, "topP": 0.3, "thinkingConfig": {"includeThoughts": True}}
    assert body["safetySettings"] == safety


async def test_sampling_at_anthropic_whose_sdk_names_it_no_more() -> None:
    body = await sent("anthropic", temperature=0.5, extra_body={"top_p": 0.1})
    assert (body["temperature"], body["top_p"]) == (0.5, 0.1)


def test_a_value_gemini_s_sdk_refuses() -> None:
    with pytest.raises(InvalidSetting, match=r"settings: temperature: Input should be a valid number") as caught:
        GeminiAdapter("m", client=ScriptedVendor("gemini").client(), settings={"temperature": "hot"})
    assert caught.value.hint == "help(google.genai.types.GenerateContentConfig) has the words"


async def test_a_long_answer_of_anthropic_need_not_be_streamed() -> None:
    vendor = ScriptedVendor("anthropic", [VendorSays("ok")])
    async with AnthropicAdapter("claude-opus-4-5", client=vendor.client(), max_output_tokens=64_000) as anthropic:
        assert (await anthropic.run("go")).text == "ok"
    assert vendor.asked[0]["max_tokens"] == 64_000


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
async def test_a_text_without_words_is_not_sent_back_to_anthropic(streams: bool) -> None:
    empty = {"type": "text", "text": ""}
    vendor = ScriptedVendor("anthropic", [VendorSays(empty, "one"), VendorSays(empty), VendorSays("three")])
    async with AnthropicAdapter("m", client=vendor.client()) as anthropic:
        session = anthropic.session()
        for _ in range(3):
            await asked(anthropic, streams=streams, session=session)
    said = [(each["role"], [block["text"] for block in each["content"]]) for each in vendor.asked[-1]["messages"]]
    assert said == [("user", ["go"]), ("assistant", ["one"]), ("user", ["go"]), ("user", ["go"])]
    assert session.history[1]["content"][0] == empty  # the history has it all the same


async def test_a_part_gemini_s_sdk_emptied_is_not_sent_back() -> None:
    vendor = ScriptedVendor("gemini", [VendorSays({"hologram": {"x": 1}}, "one"), VendorSays("two")])
    async with GeminiAdapter("m", client=vendor.client()) as gemini:
        session = gemini.session()
        with pytest.warns(UserWarning, match="gemini sent"):
            await asked(gemini, streams=True, session=session)
        await asked(gemini, streams=True, session=session)
    assert vendor.asked[1]["contents"][1]["parts"] == [{"text": "one"}]
