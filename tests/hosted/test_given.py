"""What a caller gives to an adapter, and answers that are none: refused in words, before anything is asked or lost."""

import json
from typing import Any

import pytest

from hatchway import ExecFile
from hatchway.core.errors import AnswerWithheld, InvalidSetting, InvalidTool, TransportError
from hatchway.hosted import AnthropicAdapter, OpenAIAdapter, OpenAICodeInterpreterTool, code_tool
from hatchway.testing import RanCode, ScriptedVendor, VendorReply, VendorSays

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ({"prompt": ""}, "a prompt is text, not an empty one", 'run("What is 6 times 7?")'),
        ({"prompt": " \n"}, "a prompt is text, not an empty one", 'run("What is 6 times 7?")'),
        ({"prompt": None}, "a prompt is text, not NoneType", 'run("What is 6 times 7?")'),
        ({"prompt": [{"type": "text"}]}, "a prompt is text, not list", 'run("What is 6 times 7?")'),
        ({"session": "s"}, "a session is a HostedSession, not str", "adapter.session()"),
        ({"files": ["a.csv"]}, "files are ExecFiles, not str", 'ExecFile(name="a.csv", content=b"…")'),
        (
            {"files": ExecFile(name="a", content=b"")},
            "files takes several, not one ExecFile",
            "files=[…], also for one",
        ),
    ],
)
async def test_a_request_that_is_none(given: dict[str, Any], message: str, hint: str) -> None:
    vendor = ScriptedVendor("openai")
    async with OpenAIAdapter("m", client=vendor.client(), tools=[code_tool("openai")]) as openai:
        with pytest.raises(InvalidSetting) as caught:
            await openai.run(**{"prompt": "go", **given})
        assert (caught.value.message, caught.value.hint) == (message, hint)
        with pytest.raises(InvalidSetting):
            [event async for event in openai.stream(**{"prompt": "go", **given})]
    assert vendor.requests == []


async def test_a_session_with_another_vendor() -> None:
    claude = ScriptedVendor("anthropic", [VendorSays("hi")])
    async with (
        AnthropicAdapter("m", client=claude.client()) as anthropic,
        OpenAIAdapter("m", client=ScriptedVendor("openai").client()) as openai,
    ):
        reply = await anthropic.run("go")
        with pytest.raises(InvalidSetting, match="a conversation with anthropic, this adapter speaks with openai"):
            await openai.run("go", session=reply.session)


def test_a_kind_of_tool_instead_of_one() -> None:
    client = ScriptedVendor("openai").client()
    with pytest.raises(InvalidTool, match="OpenAICodeInterpreterTool is a kind of tool, not a tool") as caught:
        OpenAIAdapter("m", client=client, tools=[OpenAICodeInterpreterTool])
    assert caught.value.hint == "tools=[OpenAICodeInterpreterTool(…)]"


def test_the_words_a_code_tool_takes_are_told() -> None:
    with pytest.raises(InvalidSetting, match="the code tool of openai takes no memory_limit") as caught:
        code_tool("openai", memory_limit="4g")
    assert caught.value.hint == "it takes allowed_callers, container, description, handle_provider_output, handler"


@pytest.mark.parametrize(("provider", "adapter"), [("openai", OpenAIAdapter), ("anthropic", AnthropicAdapter)])
async def test_json_of_somebody_else(provider: Any, adapter: Any) -> None:
    vendor = ScriptedVendor(provider, [VendorReply(body={"choices": []})])
    async with adapter("m", client=vendor.client()) as asked:
        with pytest.raises(TransportError, match=f"{provider} sent something that is no") as caught:
            await asked.run("go")
    assert caught.value.hint == "check base_url"


def test_a_conversation_that_is_too_long_is_not_asked_in_other_words() -> None:
    told = AnswerWithheld("anthropic", "model_context_window_exceeded")
    assert told.hint == "the conversation is too long for the model: ask in a new one"


async def test_what_code_did_in_a_lost_container_is_retold_as_it_was() -> None:
    use = {"type": "server_tool_use", "name": "code_execution", "input": {"code": "x"}}
    slow = {"type": "code_execution_tool_result_error", "error_code": "execution_time_exceeded"}
    secret = {"type": "encrypted_code_execution_result", "encrypted_stdout": "E", "stderr": "", "return_code": 0}
    ends = [(f"s{n}", content) for n, content in enumerate((slow, {**secret, "content": []}))]
    blocks: list[Any] = []
    for call_id, content in ends:
        result = {"type": "code_execution_tool_result", "tool_use_id": call_id, "content": content}
        blocks += [{**use, "id": call_id}, result]
    gone = VendorReply(status=404, body={"error": {"message": "container expired"}})
    vendor = ScriptedVendor("anthropic", [VendorSays(*blocks, "one"), gone, VendorSays("two")])
    async with AnthropicAdapter("m", client=vendor.client(), tools=[code_tool("anthropic")]) as anthropic:
        session = anthropic.session()
        await anthropic.run("go", session=session)
        await anthropic.run("go", session=session)
    retold = json.dumps(vendor.asked[-1]["messages"])
    assert "It failed: execution_time_exceeded." in retold
    assert "What it printed is not known any more." in retold
    assert "printed nothing" not in retold


async def test_a_message_keeps_its_phase_when_its_container_is_lost() -> None:
    aside = {
        "type": "message", "id": "m0", "role": "assistant", "status": "completed", "phase": "commentary",
        "content": [{"type": "output_text", "text": "Let me see.", "annotations": []}],
    }  # fmt: skip
    thought = {"type": "reasoning", "id": "rs", "summary": []}
    gone = VendorReply(status=404, body={"error": {"message": "Container is expired"}})
    first = VendorSays(thought, aside, RanCode("x", "1"), "one")
    vendor = ScriptedVendor("openai", [first, gone, VendorSays("two")])
    async with OpenAIAdapter("m", client=vendor.client(), tools=[code_tool("openai")]) as openai:
        session = openai.session()
        await openai.run("go", session=session)
        await openai.run("go", session=session)
    assert {"role": "assistant", "content": "Let me see.", "phase": "commentary"} in vendor.asked[-1]["input"]
