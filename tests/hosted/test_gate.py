"""Calls from a vendor's code to our tools: the same gate, journal and approvals as for a sandbox of ours."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hatchway import (
    Allow,
    ApprovalRequired,
    CallContext,
    Deny,
    Edit,
    FunctionCall,
    InDoubt,
    Ran,
    Rule,
    Waiting,
    tool,
)
from hatchway.core.errors import (
    AnswerWithheld,
    CheckpointRefused,
    CodeLimitError,
    InvalidSetting,
    InvalidTool,
    TransportError,
)
from hatchway.core.events import AgentEvent, ApprovalRequest, CallDecided, CallFailed, CallStarted, ToolOutput
from hatchway.core.limits import Limits
from hatchway.hosted import (
    AnthropicAdapter,
    AnthropicCodeExecutionTool,
    GeminiAdapter,
    GeminiCodeExecutionTool,
    HostedAdapter,
    HostedCallMade,
    HostedReply,
    HostedSandbox,
    OpenAIAdapter,
    OpenAICodeInterpreterTool,
    ToolContext,
    ToolResult,
    code_tool,
    typed_tool,
)
from hatchway.journal.store import Journal
from hatchway.testing import ScriptedVendor

pytestmark = pytest.mark.anyio
VERSION = "code_execution_20260521"
PROGRAM = {"type": "program", "id": "p1", "call_id": "prog_1", "code": "text(await price({item: 'tea'}))",
           "fingerprint": "opaque-fp"}  # fmt: skip
CALLER = {"type": "program", "caller_id": "prog_1"}


def openai_calls(*calls: tuple[str, str, Any], program: bool = True) -> dict[str, Any]:
    items: list[dict[str, Any]] = [PROGRAM] if program else []
    for call_id, name, arguments in calls:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        item = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name, "arguments": text}
        items.append({**item, "status": "completed", **({"caller": CALLER} if program else {})})
    return {"id": "r1", "object": "response", "model": "m", "status": "completed", "output": items}


def openai_end(text: str = "done") -> dict[str, Any]:
    output = [
        {"type": "program_output", "id": "po", "call_id": "prog_1", "result": "3", "status": "completed"},
        {"type": "message", "id": "m", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": text, "annotations": []}]},
    ]  # fmt: skip
    return {"id": "r2", "object": "response", "model": "m", "status": "completed", "output": output}


def anthropic_calls(*calls: tuple[str, str, Any], caller: str = VERSION) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {
            "type": "server_tool_use",
            "id": "srv_1",
            "name": "code_execution",
            "input": {"code": "print(await price('tea'))"},
        },
    ]
    for call_id, name, arguments in calls:
        told = {"type": caller, "tool_id": "srv_1"}
        blocks.append({"type": "tool_use", "id": call_id, "name": name, "input": arguments, "caller": told})
    return _message(blocks, "tool_use")


def anthropic_end(text: str = "done") -> dict[str, Any]:
    content = {"type": "code_execution_result", "stdout": "3\n", "stderr": "", "return_code": 0, "content": []}
    result = {"type": "code_execution_tool_result", "tool_use_id": "srv_1", "content": content}
    return _message([result, {"type": "text", "text": text}], "end_turn")


def _message(blocks: list[dict[str, Any]], stop: str) -> dict[str, Any]:
    container = {"id": "container_1", "expires_at": "2026-12-01T00:00:00Z"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    base = {"id": "msg_1", "type": "message", "role": "assistant", "model": "c", "stop_sequence": None}
    return {**base, "content": blocks, "stop_reason": stop, "usage": usage, "container": container}


CALLS: dict[str, Any] = {"openai": openai_calls, "anthropic": anthropic_calls}
ENDS: dict[str, Any] = {"openai": openai_end, "anthropic": anthropic_end}
vendors = pytest.mark.parametrize("provider", ["openai", "anthropic"])


def an_adapter(
    provider: Any, script: list[Any], *, tools: Any, **settings: Any
) -> tuple[HostedAdapter, ScriptedVendor]:
    vendor = ScriptedVendor(provider, script)
    kinds: dict[str, Any] = {"openai": OpenAIAdapter, "anthropic": AnthropicAdapter}
    places = {"openai": {}, "anthropic": {"version": VERSION}}
    code = code_tool(provider, tools=tools, **places[provider])
    return kinds[provider]("m", client=vendor.client(), tools=[code], retries=0, **settings), vendor


def answers(provider: str, body: Any) -> list[Any]:
    """What the vendor was given for its calls in the last message."""
    if provider == "openai":
        return [item for item in body["input"] if item.get("type") == "function_call_output"]
    return body["messages"][-1]["content"]


@vendors
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
async def test_a_call_from_code_passes_the_gate_and_goes_back(provider: str, streams: bool) -> None:
    @tool
    async def price(item: str, context: CallContext) -> dict[str, Any]:
        """What an item costs."""
        assert context.run_id
        return {"item": item, "euro": 3}

    events: list[AgentEvent] = []
    script = [CALLS[provider](("call_1", "price", {"item": "tea"})), ENDS[provider]()]
    settings = {"on_event": events.append, "approve": lambda call: call.kwargs == {"item": "tea"}}
    adapter, vendor = an_adapter(provider, script, tools=[price], **settings)
    async with adapter:
        if streams:
            last = [event async for event in adapter.stream("go")][-1]
            reply: Any = getattr(last, "result", None)
        else:
            reply = await adapter.run("go")
    assert isinstance(reply, HostedReply)
    assert reply.text == "done"
    assert reply.usage.calls == 1
    (code,) = reply.codes
    assert "price(" in code.call.code
    made = [event.call for event in events if isinstance(event, HostedCallMade)]
    assert [(call.is_from_code, call.parent_code_call_id) for call in made] == [
        (True, "prog_1" if provider == "openai" else "srv_1")
    ]
    assert [call.arguments for call in made] == [{}]  # what must not be seen is known to the gate alone
    kinds = [type(event) for event in events if isinstance(event, CallDecided | CallStarted | ToolOutput)]
    assert kinds == [CallDecided, CallStarted, ToolOutput]
    first, second = vendor.asked
    given = '{"item":"tea","euro":3}'
    if provider == "openai":
        assert {"type": "programmatic_tool_calling"} in first["tools"]
        assert next(each for each in first["tools"] if each["type"] == "function")["allowed_callers"] == [
            "programmatic"
        ]
        assert second["input"][1] == PROGRAM
        assert code.opaque == {"fingerprint": "opaque-fp"}
        assert answers(provider, second) == [
            {"type": "function_call_output", "call_id": "call_1", "output": given, "caller": CALLER}
        ]
    else:
        assert first["tools"][0] == {"type": VERSION, "name": "code_execution"}
        assert first["tools"][1]["allowed_callers"] == [VERSION]
        assert second["container"] == "container_1"
        assert second["messages"][1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "sig"}
        assert answers(provider, second) == [{"type": "tool_result", "tool_use_id": "call_1", "content": given}]


@vendors
async def test_denied_failed_unknown_and_unreadable_calls(provider: str) -> None:
    @tool
    def price(item: str) -> int:
        raise KeyError(item)

    @tool(approval="deny")
    def wipe() -> None:
        raise AssertionError("it must not run")

    calls = [("a", "price", {"item": "tea"}), ("b", "wipe", {}), ("c", "prise", {}), ("d", "price", {"item": 5})]
    calls.append(("e", "price", "{not json" if provider == "openai" else ["no object"]))
    events: list[AgentEvent] = []
    script = [CALLS[provider](*calls), ENDS[provider]()]
    adapter, vendor = an_adapter(provider, script, tools=[price, wipe], on_event=events.append)
    async with adapter:
        assert (await adapter.run("go")).text == "done"
    told = answers(provider, vendor.asked[1])
    texts = [each["output"] if provider == "openai" else each["content"] for each in told]
    by_id = {each.get("call_id") or each["tool_use_id"]: text for each, text in zip(told, texts, strict=True)}
    assert "KeyError" in by_id["a"]
    assert "ToolDenied: the tool wipe is switched off" in by_id["b"]
    assert "there is no tool prise; did you mean price?" in by_id["c"]
    assert "item" in by_id["d"]
    assert "the arguments are no JSON object" in by_id["e"]
    if provider == "openai":
        assert json.loads(by_id["b"]) == {"error": "ToolDenied: the tool wipe is switched off"}
    else:
        assert all(each["is_error"] for each in told)
    assert sum(isinstance(event, CallFailed) for event in events) == 5


@vendors
async def test_a_partial_resume_waits_for_the_rest_and_survives_the_process(provider: str, tmp_path: Path) -> None:
    paid: list[int] = []

    @tool(approval="ask")
    def pay(euro: int) -> str:
        paid.append(euro)
        return f"paid {euro}"

    script = [CALLS[provider](("c1", "pay", {"euro": 1}), ("c2", "pay", {"euro": 2}), ("c3", "pay", {"euro": 3}))]
    journal = str(tmp_path / "journal.db")
    adapter, vendor = an_adapter(provider, script, tools=[pay], journal=journal)
    async with adapter:
        with pytest.raises(ApprovalRequired) as asked:
            await adapter.run("go")
        run_id = asked.value.run_id
        assert {call.call_id for call in asked.value.pending} == {"c1", "c2", "c3"}
        with pytest.raises(ApprovalRequired) as still:
            await adapter.resume(run_id, {"c2": Allow()})
        assert {call.call_id for call in still.value.pending} == {"c1", "c3"}
    assert paid == [2]
    assert len(vendor.asked) == 1  # a vendor takes no part of the results
    adapter, vendor = an_adapter(provider, [ENDS[provider]("paid")], tools=[pay], journal=journal)  # another process
    async with adapter:
        reply = await adapter.resume(run_id, {"c1": Deny("too dear"), "c3": Edit({"euro": 30})})
        again = await adapter.resume(run_id)
    assert (reply.text, again.output) == ("paid", "paid")
    assert paid == [2, 30]
    told = json.dumps(answers(provider, vendor.asked[0]))
    assert all(word in told for word in ("paid 2", "too dear", "paid 30"))
    if provider == "anthropic":
        assert vendor.asked[0]["container"] == "container_1"
        assert {block["type"] for block in vendor.asked[0]["messages"][-1]["content"]} == {"tool_result"}
    store = Journal(journal)
    assert [row.state for row in store.runs()] == ["done"]
    store.close()


async def test_a_paused_request_goes_on_in_its_session_unless_the_session_went_on_without_it() -> None:
    @tool(approval="ask")
    def pay(euro: int) -> int:
        return euro

    call = openai_calls(("c1", "pay", {"euro": 1}))
    adapter, vendor = an_adapter("openai", [call, openai_end(), openai_end("next"), call, openai_end()], tools=[pay])
    async with adapter:
        session = adapter.session()
        with pytest.raises(ApprovalRequired) as asked:
            await adapter.run("go", session=session)
        reply = await adapter.resume(asked.value.run_id, {"c1": True})
        assert reply.session is session
        assert (await adapter.run("more", session=session)).text == "next"
        assert vendor.asked[2]["input"][:-1] == session.history[: len(vendor.asked[2]["input"]) - 1]
        with pytest.raises(ApprovalRequired) as asked:
            await adapter.run("again", session=session)
        await adapter.run("something else", session=session)
        with pytest.raises(CheckpointRefused, match="went on without this request"):
            await adapter.resume(asked.value.run_id, {"c1": True})


async def test_approvals_come_as_events_when_it_is_streamed() -> None:
    @tool(approval="ask")
    def pay(euro: int) -> int:
        return euro

    adapter, _ = an_adapter("anthropic", [anthropic_calls(("c", "pay", {"euro": 1})), anthropic_end()], tools=[pay])
    async with adapter:
        asked = 0
        async for event in adapter.stream("go"):
            if isinstance(event, ApprovalRequest):
                asked += 1
                assert (event.tool_name, dict(event.tool_args)) == ("pay", {"euro": 1})
                event.approve(True)
    assert asked == 1


async def test_rules_and_limits_hold_at_a_vendor_too() -> None:
    @tool
    def price(item: str) -> int:
        return 1

    calls = [(f"c{n}", "price", {"item": "tea"}) for n in range(3)]
    adapter, vendor = an_adapter(
        "openai", [openai_calls(*calls), openai_end()], tools=[price], rules=[Rule("deny", "price")]
    )
    async with adapter:
        await adapter.run("go")
    assert "a rule denies price" in json.dumps(vendor.asked[1])
    adapter, _ = an_adapter("openai", [openai_calls(*calls)], tools=[price], limits=Limits(calls=2))
    async with adapter:
        with pytest.raises(CodeLimitError):
            await adapter.run("go")
    adapter, _ = an_adapter("openai", [openai_calls(calls[0])] * 3, tools=[price], max_rounds=2)
    async with adapter:
        with pytest.raises(AnswerWithheld, match="max_rounds"):
            await adapter.run("go")
    adapter, _ = an_adapter("openai", [openai_calls(calls[0], calls[0])], tools=[price])
    async with adapter:
        with pytest.raises(TransportError, match="two calls with one id"):
            await adapter.run("go")


@pytest.mark.parametrize(
    ("caller", "is_from_code"),
    [("direct", False), ("code_execution_20250825", True), ("code_execution_20260120", True), (VERSION, True),
     ("code_execution_20991231", True)],
)  # fmt: skip
async def test_the_caller_is_judged_by_its_type(caller: str, is_from_code: bool) -> None:
    @tool
    def price(item: str) -> int:
        return 1

    events: list[AgentEvent] = []
    script = [anthropic_calls(("c", "price", {"item": "x"}), caller=caller), anthropic_end()]
    adapter, _ = an_adapter("anthropic", script, tools=[price], on_event=events.append)
    async with adapter:
        await adapter.run("go")
    (made,) = [event.call for event in events if isinstance(event, HostedCallMade)]
    assert (made.caller, made.is_from_code) == (caller, is_from_code)


async def test_typed_tools_know_the_turn_they_serve() -> None:
    @dataclass(frozen=True)
    class Wanted:
        item: str
        many: int = 1

    @dataclass(frozen=True)
    class Priced:
        euro: int

    contexts: list[ToolContext] = []

    async def price(params: Wanted, *, context: ToolContext) -> ToolResult[Priced]:
        """What an item costs."""
        contexts.append(context)
        if params.item == "air":
            return ToolResult("air is free", None, False)
        return ToolResult("fine", Priced(euro=params.many * 3))

    offered = typed_tool(price)
    assert offered.parameters["properties"]["many"] == {"default": 1, "title": "Many", "type": "integer"}
    assert offered.description == "What an item costs."
    calls = openai_calls(("a", "price", {"item": "tea", "many": 2}), ("b", "price", {"item": "air"}))
    adapter, vendor = an_adapter("openai", [calls, openai_end()], tools=[offered])
    async with adapter:
        reply = await adapter.run("go")
    told = {each["call_id"]: each["output"] for each in answers("openai", vendor.asked[1])}
    assert told["a"] == '{"euro":6}'
    assert "air is free" in told["b"]
    assert all(context.adapter is adapter and context.session is reply.session for context in contexts)
    assert {context.call_id for context in contexts} == {"a", "b"}
    with pytest.raises(InvalidTool, match="takes a dataclass"):
        typed_tool(lambda x: ToolResult("", x), name="nothing")


async def test_tools_the_model_calls_itself_on_every_vendor() -> None:
    @tool
    def price(item: str) -> int:
        return 3

    direct = openai_calls(("c", "price", {"item": "tea"}), program=False)
    adapter = OpenAIAdapter(
        "m", client=(openai := ScriptedVendor("openai", [direct, openai_end()])).client(), tools=[price]
    )
    async with adapter:
        assert (await adapter.run("go")).text == "done"
    assert "allowed_callers" not in openai.asked[0]["tools"][0]
    assert answers("openai", openai.asked[1]) == [{"type": "function_call_output", "call_id": "c", "output": "3"}]

    def parts(*parts: dict[str, Any]) -> dict[str, Any]:
        content = {"role": "model", "parts": list(parts)}
        return {"candidates": [{"content": content, "finishReason": "STOP"}], "responseId": "r"}

    for call, back in (({"id": "q"}, {"id": "q"}), ({}, {})):
        signed = {"functionCall": {"name": "price", "args": {"item": "tea"}, **call}, "thoughtSignature": "AAEC"}
        gemini = ScriptedVendor("gemini", [parts(signed), parts({"text": "done"})])
        async with GeminiAdapter("m", client=gemini.client(), tools=[price]) as google:
            assert (await google.run("go", tool_choice="price")).text == "done"
        first, second = gemini.asked
        assert first["toolConfig"] == {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["price"]}}
        assert second["contents"][1]["parts"] == [signed]
        answer = {"name": "price", "response": {"result": "3"}, **back}
        assert second["contents"][2]["parts"] == [{"functionResponse": answer}]


def test_gemini_code_cannot_call_tools() -> None:
    with pytest.raises(InvalidTool, match="code at gemini cannot call your tools"):
        code_tool("gemini", tools=[an_adapter])
    assert isinstance(code_tool("gemini"), GeminiCodeExecutionTool)
    assert isinstance(code_tool("openai", container={"memory_limit": "4g"}), OpenAICodeInterpreterTool)
    assert isinstance(code_tool("anthropic"), AnthropicCodeExecutionTool)


async def test_a_request_given_up_while_a_tool_ran(tmp_path: Path) -> None:
    journal, begun = str(tmp_path / "journal.db"), asyncio.Event()

    @tool
    async def price(item: str) -> int:
        begun.set()
        await asyncio.Event().wait()
        return 1

    call = openai_calls(("c", "price", {"item": "tea"}))
    ids: set[str] = set()
    settings: dict[str, Any] = {"journal": journal, "on_event": lambda event: ids.add(event.run_id)}
    adapter, _ = an_adapter("openai", [call], tools=[price], **settings)
    async with adapter:
        running = asyncio.create_task(adapter.run("go"))
        await begun.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    (run_id,) = ids
    adapter, vendor = an_adapter("openai", [openai_end()], tools=[price], journal=journal)
    async with adapter:
        with pytest.raises(InDoubt):
            await adapter.resume(run_id)
        with pytest.raises(CheckpointRefused, match="cannot run code again") as caught:
            await adapter.resume(run_id, {"c": Ran(3)})
    assert caught.value.hint == f"`hatchway show {run_id[:8]}` tells which calls ran; ask anew for the rest"
    assert vendor.requests == []


async def test_pulled_by_hand_a_vendor_waits_for_all_results() -> None:
    @tool
    def price(item: str) -> int:
        return 1

    script = [anthropic_calls(("a", "price", {"item": "x"}), ("b", "price", {"item": "y"})), anthropic_end()]
    adapter, vendor = an_adapter("anthropic", script, tools=[price])
    async with adapter:
        execution = await HostedSandbox(adapter).execute("go")
        with pytest.raises(RuntimeError, match="not waiting"):
            execution.dump()
        first, second = await execution.next(), await execution.next()
        assert isinstance(first, FunctionCall)
        assert isinstance(second, FunctionCall)
        assert isinstance(await execution.next(), Waiting)
        await execution.provide_result(1, call_id="a")
        left = await execution.next()
        assert isinstance(left, Waiting)
        assert [call.call_id for call in left.pending] == ["b"]
        with pytest.raises(InvalidSetting, match="no pending call 'a'\npending are b"):
            await execution.provide_result(1, call_id="a")
        assert len(vendor.asked) == 1
        await execution.provide_error(ValueError("no"))
        ended = await execution.next()
        assert isinstance(ended, HostedReply)
        assert await execution.next() is ended
    assert [block.get("is_error") for block in answers("anthropic", vendor.asked[1])] == [None, True]
