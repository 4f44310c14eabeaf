"""`LlmAgent(code=…)`: one word says where the code runs, at the model's vendor or here; all else stays."""

import json
from typing import Any

import pytest
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

from hatchway import tool
from hatchway.core.errors import AnswerWithheld, CodeRuntimeError, InvalidSetting, RoundLimitReached, SandboxUnavailable
from hatchway.core.events import (
    AgentEvent,
    CallFailed,
    CodeExecutionOutput,
    CodeExecutionOutputChunk,
    Response,
    ResponseChunk,
    RunFailed,
    RunStarted,
    ToolOutput,
)
from hatchway.executors import Conversation, ExecFile, LlmAgent, LocalCodeExecutor, Outcome
from hatchway.hosted import ContainerLost, UploadProgress, code_tool
from hatchway.sandboxes.registry import availability
from hatchway.testing import ScriptedVendor, VendorReply

pytestmark = pytest.mark.anyio
both_ways = pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])


@tool
async def price(item: str) -> int:
    """What an item costs."""
    return {"tea": 3}[item]


def a_model(vendor: ScriptedVendor) -> Model:
    """The vendor's model as Pydantic AI has it, over the vendor's own SDK."""
    client = vendor.client()
    match vendor.provider:
        case "openai":
            return OpenAIResponsesModel("m", provider=OpenAIProvider(openai_client=client))
        case "anthropic":
            return AnthropicModel("m", provider=AnthropicProvider(anthropic_client=client))
        case _:
            return GoogleModel("m", provider=GoogleProvider(client=client))


def openai(*items: dict[str, Any]) -> dict[str, Any]:
    base = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    rest = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return {**base, **rest, "output": list(items), "usage": usage}


def anthropic(*blocks: dict[str, Any], stop: str = "end_turn") -> dict[str, Any]:
    base = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    container = {"id": "container_1", "expires_at": "2030-01-01T00:00:00Z"}
    usage = {"input_tokens": 5, "output_tokens": 2}
    return {**base, "content": list(blocks), "stop_reason": stop, "container": container, "usage": usage}


def gemini(*parts: dict[str, Any]) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 2}
    return {"candidates": [candidate], "responseId": "r", "modelVersion": "m", "usageMetadata": usage}


def said(provider: str, text: str, **part: Any) -> dict[str, Any]:
    """A response that is an answer."""
    if provider == "openai":
        content = [{"type": "output_text", "text": text, "annotations": [], **part}]
        return openai({"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content})
    return anthropic({"type": "text", "text": text}) if provider == "anthropic" else gemini({"text": text})


def wants_code(provider: str, code: str) -> dict[str, Any]:
    """A response of a model that is offered `execute_code`."""
    if provider == "openai":
        call = {"type": "function_call", "id": "f", "call_id": "c", "name": "execute_code", "status": "completed"}
        return openai({**call, "arguments": json.dumps({"code": code})})
    if provider == "anthropic":
        use = {"type": "tool_use", "id": "c", "name": "execute_code", "input": {"code": code}}
        return anthropic(use, stop="tool_use")
    return gemini({"functionCall": {"name": "execute_code", "args": {"code": code}}})


def ran(provider: str, code: str, printed: str) -> list[dict[str, Any]]:
    """What a vendor tells of code it ran itself."""
    if provider == "openai":
        told = {"type": "code_interpreter_call", "id": "ci", "code": code, "container_id": "k", "status": "completed"}
        return [{**told, "outputs": [{"type": "logs", "logs": printed}]}]
    if provider == "anthropic":
        content = {"type": "code_execution_result", "stdout": printed, "stderr": "", "return_code": 0, "content": []}
        return [
            {"type": "server_tool_use", "id": "s", "name": "code_execution", "input": {"code": code}},
            {"type": "code_execution_tool_result", "tool_use_id": "s", "content": content},
        ]
    return [
        {"executableCode": {"code": code, "language": "PYTHON"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": printed}},
    ]


def joined(provider: str, *parts: Any) -> dict[str, Any]:
    """One response of these items and a last word."""
    whole = said(provider, "42 it is")
    place = {"openai": "output", "anthropic": "content"}.get(provider)
    if place is not None:
        return {**whole, place: [*parts, *whole[place]]}
    return gemini(*parts, {"text": "42 it is"})


async def answered(agent: LlmAgent, streams: bool, events: list[AgentEvent], **options: Any) -> str:
    """What the agent says last, whole or streamed; the same events either way."""
    if not streams:
        return (await agent.run("What is 6 * 7?", on_event=events.append, **options)).text
    async for event in agent.stream("What is 6 * 7?", **options):
        events.append(event)
    return [event.content for event in events if isinstance(event, Response)][-1]


@both_ways
@pytest.mark.parametrize("where", ["vendor", "jail", "monty"])
@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
async def test_one_word_moves_the_code(provider: Any, where: str, streams: bool) -> None:
    if where != "vendor" and availability(where).state != "usable":
        pytest.skip(f"{where}: {availability(where).reason}")
    scripts = {
        "vendor": [joined(provider, *ran(provider, "print(6 * 7)", "42\n"))],
        "here": [wants_code(provider, "print(6 * 7)"), said(provider, "42 it is")],
    }
    vendor = ScriptedVendor(provider, scripts.get(where, scripts["here"]))
    word = provider if where == "vendor" else where
    events: list[AgentEvent] = []
    async with LlmAgent("coder", model=a_model(vendor), instruction="Be exact.", code=word) as agent:
        assert await answered(agent, streams, events) == "42 it is"
    kinds = (RunStarted, CodeExecutionOutputChunk, CodeExecutionOutput)
    told = [event for event in events if isinstance(event, kinds)]
    assert [type(event) for event in told] == list(kinds)
    assert isinstance(told[0], RunStarted)
    assert told[0].code == "print(6 * 7)"
    assert isinstance(told[1], CodeExecutionOutputChunk)
    assert told[1].text == "42\n"
    assert len({event.run_id for event in told}) == 1
    assert {event.agent_id for event in events} == {"coder"}
    assert vendor.script == []
    assert "Be exact." in json.dumps(vendor.asked[0])
    assert any(isinstance(event, ResponseChunk) for event in events) is streams


@pytest.mark.parametrize("where", ["openai", "monty"])
async def test_the_code_calls_our_tools_there_as_here(where: str) -> None:
    caller = {"type": "program", "caller_id": "p"}
    call = {"type": "function_call", "call_id": "x", "name": "price", "arguments": '{"item": "tea"}'}
    program = {"type": "program", "call_id": "p", "code": "text(await price({item: 'tea'}))", "fingerprint": "f"}
    scripts = {
        "openai": [
            openai(program, {**call, "caller": caller}),
            joined("openai", {"type": "program_output", "call_id": "p", "result": "3", "status": "completed"}),
        ],
        "monty": [wants_code("openai", "print(await price('tea'))"), said("openai", "3")],
    }
    vendor = ScriptedVendor("openai", scripts[where])
    events: list[AgentEvent] = []
    async with LlmAgent("a", model=a_model(vendor), code=code_tool(where, tools=[price])) as agent:
        turn = await agent.run("go", on_event=events.append)
    assert turn.rounds == 1
    assert "3" in getattr(turn.parts[1], "output", "")
    assert "price" in json.dumps(vendor.asked[0])  # the model knows what its code may call
    if where == "openai":
        assert [event.content for event in events if isinstance(event, ToolOutput)] == [3]


@pytest.mark.parametrize("approve", [None, True], ids=["nobody", "somebody"])
@pytest.mark.parametrize("where", ["anthropic", "monty"])
async def test_calls_that_must_be_asked_for(where: str, approve: bool | None) -> None:
    paid: list[int] = []

    @tool(approval="ask")
    def pay(euro: int) -> str:
        """Pay."""
        paid.append(euro)
        return f"paid {euro}"

    caller = {"type": "code_execution_20260120", "tool_id": "s"}
    use = {"type": "tool_use", "id": "t", "name": "pay", "input": {"euro": 3}, "caller": caller}
    begun, ended = ran("anthropic", "print(await pay(3))", "done\n")
    scripts = {
        "anthropic": [anthropic(begun, use, stop="tool_use"), joined("anthropic", ended)],
        "monty": [wants_code("anthropic", "print(pay(3))"), said("anthropic", "done")],
    }
    vendor = ScriptedVendor("anthropic", scripts[where])
    code = code_tool(where, tools=[pay], approve=None if approve is None else lambda call: call.kwargs == {"euro": 3})
    events: list[AgentEvent] = []
    async with LlmAgent("a", model=a_model(vendor), code=code) as agent:
        await agent.run("go", on_event=events.append)
    assert paid == ([] if approve is None else [3])
    if where == "anthropic":
        (told,) = vendor.asked[1]["messages"][-1]["content"]
        denied = "ToolDenied: nobody is here to approve it"
        assert told["content"] == (denied if approve is None else '"paid 3"')
        assert any(isinstance(event, CallFailed) for event in events) is (approve is None)
    else:
        assert ("nobody is here to approve it" in json.dumps(vendor.asked[1])) is (approve is None)


async def test_files_go_there_and_come_back() -> None:
    cited = {"type": "container_file_citation", "container_id": "cntr_2", "file_id": "cf", "filename": "../../plot.png"}
    code = {**ran("openai", "plot()", "drawn\n")[0], "container_id": "cntr_2"}
    lost = {**cited, "file_id": "gone", "filename": "lost.csv"}
    answer = said("openai", "here", annotations=[cited, lost])
    vendor = ScriptedVendor("openai", [{**answer, "output": [code, *answer["output"]]}], files={"cf": b"png"})
    events: list[AgentEvent] = []
    async with LlmAgent("a", model=a_model(vendor), code="openai") as agent:
        given = [ExecFile(name="data.csv", content=b"1,2", mime_type="text/csv")]
        turn = await agent.run("go", files=given, on_event=events.append)
    assert turn.files == (ExecFile(name="plot.png", content=b"png", mime_type="image/png"),)
    assert "the file lost.csv could not be downloaded" in getattr(turn.parts[1], "output", "")
    assert getattr(turn.parts[1], "outcome", None) is Outcome.OutcomeUnspecified  # OpenAI does not say
    assert [event.name for event in events if isinstance(event, UploadProgress)] == ["data.csv"]
    assert "data.csv: /mnt/data/" in vendor.asked[0]["instructions"]
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (5, 2)


async def test_a_conversation_goes_on_there_and_its_container_may_be_lost() -> None:
    gone = VendorReply(status=404, body={"error": {"message": "Container k not found"}})
    vendor = ScriptedVendor("openai", [joined("openai", *ran("openai", "x = 1", "")), gone, said("openai", "two")])
    events: list[AgentEvent] = []
    conversation = Conversation()
    async with LlmAgent("a", model=a_model(vendor), code="openai") as agent:
        await agent.run("one", conversation=conversation)
        turn = await agent.run("two", conversation=conversation, on_event=events.append)
        assert turn.text == "two"
        vendor.script.append(VendorReply(status=401, body={"error": {"message": "no"}}))
        with pytest.raises(SandboxUnavailable):
            await agent.run("three", conversation=conversation)
        assert len(conversation.messages) == 4
    assert any(isinstance(event, ContainerLost) for event in events)
    assert "x = 1" in json.dumps(vendor.asked[2]["input"])


@pytest.mark.parametrize("streams", [False, True])
async def test_code_that_failed_there(streams: bool) -> None:
    failed = {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "ZeroDivisionError"}}
    code = {"executableCode": {"code": "1/0", "language": "PYTHON"}}
    vendor = ScriptedVendor("gemini", [joined("gemini", code, failed)])
    events: list[AgentEvent] = []
    async with LlmAgent("a", model=a_model(vendor), code="gemini") as agent:
        await answered(agent, streams, events)
    (ended,) = [event for event in events if isinstance(event, RunFailed)]
    assert isinstance(ended.error, CodeRuntimeError)
    assert "ZeroDivisionError" in str(ended.error)


async def test_answers_that_do_not_come() -> None:
    filtered = {**openai(), "status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
    call = {"type": "function_call", "call_id": "x", "name": "price", "arguments": '{"item": "tea"}'}
    calls = [{**openai({**call, "call_id": str(number)}), "id": str(number)} for number in range(3)]
    vendor = ScriptedVendor("openai", [filtered, *calls])
    code = code_tool("openai", tools=[price])
    async with LlmAgent("a", model=a_model(vendor), code=code, max_rounds=1) as agent:
        with pytest.raises(AnswerWithheld):
            await agent.run("go")
        with pytest.raises(RoundLimitReached):
            await agent.run("go")


def test_models_and_places_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    vendor = ScriptedVendor("anthropic")
    with pytest.raises(InvalidSetting, match="code at openai is run by a model of openai, and AnthropicModel 'm' is"):
        LlmAgent("a", model=a_model(vendor), code="openai")
    with pytest.raises(InvalidSetting, match="one of anthropic") as told:
        LlmAgent("a", model="anthropic:claude", code="gemini")
    assert told.value.hint == "code='jail' works with any model"
    with pytest.raises(InvalidSetting, match="TestModel"):
        LlmAgent("a", model=TestModel(), code="openai")
    with pytest.raises(InvalidSetting, match="there is no place 'moon'"):
        LlmAgent("a", model=TestModel(), code="moon")
    with pytest.raises(InvalidSetting, match="'price' runs no code"):
        LlmAgent("a", model=TestModel(), code=price)
    with pytest.raises(InvalidSetting, match="said twice"):
        LlmAgent("a", model=TestModel(), code="monty", code_executor=LocalCodeExecutor())
    with pytest.raises(InvalidSetting, match="max_tokens, temperature, top_p, not logit_bias"):
        LlmAgent("a", model=a_model(vendor), code="anthropic", model_settings={"logit_bias": {}})
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    LlmAgent("a", model="openai:gpt-5", code="openai")
    LlmAgent("a", model="gpt-5", code="openai")


async def test_settings_and_a_conversation_begun_elsewhere() -> None:
    vendor = ScriptedVendor("gemini", [said("gemini", "x"), said("gemini", "y")])
    settings: Any = {"max_tokens": 9, "top_p": 0.5}
    async with LlmAgent("a", model=a_model(vendor), code="gemini", model_settings=settings) as agent:
        await agent.run("go")
    assert vendor.asked[0]["generationConfig"] == {"topP": 0.5, "maxOutputTokens": 9}
    conversation = Conversation()
    await LlmAgent("b", model=a_model(vendor), code="monty").run("go", conversation=conversation)
    with pytest.raises(InvalidSetting, match="begun where code does not run at a vendor"):
        await agent.run("go", conversation=conversation)
