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
from hatchway.core.errors import AnswerWithheld, CodeRuntimeError, InvalidSetting, SandboxUnavailable
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
from hatchway.testing import CallsTool, CodeEnded, RanCode, ScriptedVendor, VendorReply, VendorSays

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


ASKS = CallsTool("execute_code", {"code": "print(6 * 7)"})


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
        "vendor": [VendorSays(RanCode("print(6 * 7)", "42\n"), "42 it is")],
        "here": [VendorSays(ASKS), VendorSays("42 it is")],
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
    call = CallsTool("price", {"item": "tea"}, by="text(await price({item: 'tea'}))")
    here = CallsTool("execute_code", {"code": "print(await price('tea'))"})
    scripts = {
        "openai": [VendorSays(call), VendorSays(CodeEnded("3"), "3 it is")],
        "monty": [VendorSays(here), VendorSays("3 it is")],
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

    call = CallsTool("pay", {"euro": 3}, by="print(await pay(3))")
    scripts = {
        "anthropic": [VendorSays(call), VendorSays(CodeEnded("done\n"), "done")],
        "monty": [VendorSays(CallsTool("execute_code", {"code": "print(pay(3))"})), VendorSays("done")],
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
        assert told["content"] == (denied if approve is None else "paid 3")
        assert any(isinstance(event, CallFailed) for event in events) is (approve is None)
    else:
        assert ("nobody is here to approve it" in json.dumps(vendor.asked[1])) is (approve is None)


async def test_files_go_there_and_come_back() -> None:
    ran = RanCode("plot()", "drawn\n", files={"cf": "../../plot.png", "gone": "lost.csv"})
    vendor = ScriptedVendor("openai", [VendorSays(ran, "here")], files={"cf": b"png"})
    events: list[AgentEvent] = []
    async with LlmAgent("a", model=a_model(vendor), code="openai") as agent:
        given = [ExecFile(name="data.csv", content=b"1,2", mime_type="text/csv")]
        turn = await agent.run("go", files=given, on_event=events.append)
    assert turn.files == (ExecFile(name="plot.png", content=b"png", mime_type="image/png"),)
    assert "the file lost.csv could not be downloaded" in getattr(turn.parts[1], "output", "")
    assert getattr(turn.parts[1], "outcome", None) is Outcome.OutcomeUnspecified  # OpenAI does not say
    assert [event.name for event in events if isinstance(event, UploadProgress)] == ["data.csv"]
    assert "data.csv: /mnt/data/" in vendor.asked[0]["instructions"]
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (7, 3)


async def test_a_conversation_goes_on_there_and_its_container_may_be_lost() -> None:
    gone = VendorReply(status=404, body={"error": {"message": "Container cntr_1 not found"}})
    vendor = ScriptedVendor("openai", [VendorSays(RanCode("x = 1"), "one"), gone, VendorSays("two")])
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
    vendor = ScriptedVendor("gemini", [VendorSays(RanCode("1/0", "ZeroDivisionError", failed=True), "oh")])
    events: list[AgentEvent] = []
    async with LlmAgent("a", model=a_model(vendor), code="gemini") as agent:
        await answered(agent, streams, events)
    (ended,) = [event for event in events if isinstance(event, RunFailed)]
    assert isinstance(ended.error, CodeRuntimeError)
    assert "ZeroDivisionError" in str(ended.error)


async def test_answers_that_do_not_come() -> None:
    calls = [VendorSays(CallsTool("price", {"item": "tea"}, call_id=str(number))) for number in range(3)]
    vendor = ScriptedVendor("openai", [VendorSays(stop="filtered"), *calls])
    code = code_tool("openai", tools=[price])
    async with LlmAgent("a", model=a_model(vendor), code=code, max_rounds=1) as agent:
        with pytest.raises(AnswerWithheld):
            await agent.run("go")
        with pytest.raises(AnswerWithheld, match="max_rounds"):
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
    vendor = ScriptedVendor("gemini", [VendorSays("x"), VendorSays("y")])
    settings: Any = {"max_tokens": 9, "top_p": 0.5}
    async with LlmAgent("a", model=a_model(vendor), code="gemini", model_settings=settings) as agent:
        await agent.run("go")
    assert vendor.asked[0]["generationConfig"] == {"topP": 0.5, "maxOutputTokens": 9}
    claude = ScriptedVendor("anthropic", [VendorSays("x")])
    async with LlmAgent("a", model=a_model(claude), code="anthropic", model_settings=settings) as agent:
        await agent.run("go")
    assert (claude.asked[0]["max_tokens"], claude.asked[0]["top_p"]) == (9, 0.5)
    conversation = Conversation()
    await LlmAgent("b", model=a_model(vendor), code="monty").run("go", conversation=conversation)
    with pytest.raises(InvalidSetting, match="begun where code does not run at a vendor"):
        await agent.run("go", conversation=conversation)
