"""A vendor as it is on bad days, through its real SDK: streams, limits, broken connections, malformed arguments."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from hatchway.agent import Agent, ApprovalRequest, CodeExecutionOutput, Compacted, Response, ResponseChunk, Retrying
from hatchway.sandboxes.monty import MontySandbox

pytestmark = pytest.mark.anyio
SERVER: dict[str, Any] = runpy.run_path(str(Path(__file__).parent / "vendor_server.py"))
Says, Calls, Refuses, BreaksOff, Hangs = (SERVER[name] for name in ("Says", "Calls", "Refuses", "BreaksOff", "Hangs"))
CODE = json.dumps({"code": "sum(range(10))"})


async def turn(answers: list[Any], workspace: Path, watch: Any, **settings: Any) -> tuple[list[Any], Any, Agent]:
    with SERVER["serving"](answers) as vendor:
        client = AsyncOpenAI(base_url=vendor.url, api_key="none", max_retries=0)
        async with client, MontySandbox() as sandbox:
            model = OpenAIChatModel("fake-model", provider=OpenAIProvider(openai_client=client))
            async with Agent(model, working_dir=workspace, sandbox=sandbox, **settings) as agent:
                events = await watch(agent.stream("add the numbers below ten"))
    return events, vendor, agent


async def test_a_turn_over_real_http_streams_and_counts(tmp_path: Path, watch: Any) -> None:
    answers = [Calls("execute_code", [CODE[:5], CODE[5:12], CODE[12:]]), Says(["It ", "is ", "45."])]
    events, vendor, agent = await turn(answers, tmp_path, watch, system_prompt="Add.")
    assert [event.content for event in watch.only(ResponseChunk, events)] == ["It ", "is ", "45."]
    assert watch.only(Response, events)[0].content == "It is 45."
    assert watch.only(CodeExecutionOutput, events)[0].text == "45"
    first, second = vendor.requests
    assert first["stream"] is True
    assert first["messages"][0]["role"] == "system"
    assert first["messages"][0]["content"].startswith("Add.")
    assert next(each["function"]["name"] for each in first["tools"]) == "execute_code"
    assert second["messages"][-1] == {"role": "tool", "tool_call_id": "call_1", "content": "45"}
    assert (agent.usage.input_tokens, agent.usage.output_tokens) == (22, 14)


async def test_a_limited_rate_is_waited_for_as_the_vendor_says(tmp_path: Path, watch: Any) -> None:
    answers = [Refuses(429, {"retry-after-ms": "50"}), Refuses(429, {"Retry-After": "1"}), Says(["Hello."])]
    events, vendor, _ = await turn(answers, tmp_path, watch)
    assert [each.seconds for each in watch.only(Retrying, events)] == [0.05, 1.0]
    assert watch.only(Response, events)[0].content == "Hello."
    assert len(vendor.requests) == 3


async def test_a_reply_that_breaks_off_is_asked_for_again_and_its_pieces_count_for_nothing(
    tmp_path: Path, watch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hatchway.agent.replies.FIRST_WAIT", 0.01)
    events, vendor, agent = await turn([BreaksOff(["It is "]), Refuses(503), Says(["45."])], tmp_path, watch)
    assert [event.reason for event in watch.only(Retrying, events)] == [
        "the connection to the vendor broke",
        "the vendor answered 503",
    ]
    assert [event.content for event in watch.only(Response, events)] == ["45."]
    assert len(agent.messages) == 2
    assert len(vendor.requests) == 3


async def test_a_vendor_that_does_not_answer_in_time_is_asked_again(
    tmp_path: Path, watch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hatchway.agent.replies.FIRST_WAIT", 0.01)
    events, vendor, _ = await turn([Hangs(2), Says(["45."])], tmp_path, watch, model_settings={"timeout": 0.5})
    assert [event.reason for event in watch.only(Retrying, events)] == ["the vendor did not answer in time"]
    assert [event.content for event in watch.only(Response, events)] == ["45."]
    assert len(vendor.requests) == 2


async def test_malformed_arguments_are_told_to_the_model_which_corrects_itself(tmp_path: Path, watch: Any) -> None:
    answers = [Calls("execute_code", ['{"code": "1 +']), Calls("execute_code", [CODE]), Says(["45."])]
    events, vendor, _ = await turn(answers, tmp_path, watch)
    assert len(watch.only(ApprovalRequest, events)) == 1
    assert "the arguments are no JSON object" in vendor.requests[1]["messages"][-1]["content"]
    assert vendor.requests[2]["messages"][-1]["content"] == "45"


async def test_a_refusal_that_will_not_pass_ends_the_turn_and_the_next_one_works(tmp_path: Path, watch: Any) -> None:
    with SERVER["serving"]([Refuses(401), Says(["Hello."])]) as vendor:
        client = AsyncOpenAI(base_url=vendor.url, api_key="none", max_retries=0)
        async with client, MontySandbox() as sandbox:
            model = OpenAIChatModel("fake-model", provider=OpenAIProvider(openai_client=client))
            async with Agent(model, working_dir=tmp_path, sandbox=sandbox) as agent:
                with pytest.raises(ModelAPIError):
                    await watch(agent.stream("hi"))
                events = await watch(agent.stream("hi again"))
    assert watch.only(Response, events)[0].content == "Hello."


async def test_a_context_that_is_full_is_summed_up_and_asked_again(tmp_path: Path, watch: Any) -> None:
    full = {"error": {"message": "maximum context length", "type": "x", "code": "context_length_exceeded"}}
    answers = [
        Calls("execute_code", [CODE]),
        Refuses(400, body=full),
        Says(["The user wants a sum; it is 45."]),
        Says(["45."]),
    ]
    events, vendor, _ = await turn(answers, tmp_path, watch)
    assert len(watch.only(Compacted, events)) == 1
    assert watch.only(Response, events)[-1].content == "45."
    assert "The user wants a sum" in vendor.requests[-1]["messages"][1]["content"]


async def test_a_full_context_whose_summary_is_refused_goes_on_with_both_ends_of_it(tmp_path: Path, watch: Any) -> None:
    full = {"error": {"message": "maximum context length", "type": "x", "code": "context_length_exceeded"}}
    answers = [Calls("execute_code", [CODE]), Refuses(400, body=full), Refuses(400), Says(["45."])]
    events, vendor, _ = await turn(answers, tmp_path, watch)
    assert len(watch.only(Compacted, events)) == 1
    assert watch.only(Response, events)[-1].content == "45."
    assert "User: add the numbers below ten" in vendor.requests[-1]["messages"][1]["content"]


async def test_a_summary_too_long_for_the_model_is_asked_for_of_less(tmp_path: Path, watch: Any) -> None:
    full = {"error": {"message": "maximum context length", "type": "x", "code": "context_length_exceeded"}}
    long = json.dumps({"code": "print('x' * 9000)"})
    said = [Calls("execute_code", [long]), Calls("execute_code", [long]), Calls("execute_code", [long])]
    answers = [*said, Refuses(400, body=full), Refuses(400, body=full), Says(["Many an x."]), Says(["Done."])]
    events, vendor, _ = await turn(answers, tmp_path, watch)
    assert watch.only(Response, events)[-1].content == "Done."
    first, second = (len(request["messages"][0]["content"]) for request in vendor.requests[4:6])
    assert second < 0.8 * first
    assert "Many an x." in vendor.requests[-1]["messages"][1]["content"]


async def test_a_summary_is_asked_for_again_when_the_vendor_is_limited(tmp_path: Path, watch: Any) -> None:
    full = {"error": {"message": "maximum context length", "type": "x", "code": "context_length_exceeded"}}
    answers = [
        Calls("execute_code", [CODE]),
        Refuses(400, body=full),
        Refuses(429, {"retry-after": "0"}),
        BreaksOff(["The user wa"]),
        Says(["The user wants a sum; it is 45."]),
        Says(["45."]),
    ]
    events, _, _ = await turn(answers, tmp_path, watch)
    assert [event.reason for event in watch.only(Retrying, events)] == [
        "the vendor limits the rate",
        "the connection to the vendor broke",
    ]
    assert [event.content for event in watch.only(Response, events)] == ["45."]


async def test_an_empty_reply_is_asked_for_again_and_then_taken_for_the_end(tmp_path: Path, watch: Any) -> None:
    events, vendor, _ = await turn([Says([]), Says([" "]), Says(["Hello."])], tmp_path, watch)
    assert [event.reason for event in watch.only(Retrying, events)] == ["the model said nothing"] * 2
    assert watch.only(Response, events)[0].content == "Hello."
    assert [len(request["messages"]) for request in vendor.requests] == [2, 2, 2]
    events, vendor, _ = await turn([Says([])] * 3, tmp_path, watch)
    assert (len(vendor.requests), watch.only(Response, events)) == (3, [])
