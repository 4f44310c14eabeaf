"""Streaming: every step is an event with its ids, in the order things happened."""

import asyncio
from typing import Any

import pytest

from hatchway import ApprovalRequired, CodeMode, Deny, tool
from hatchway.core.events import (
    AgentEvent,
    ApprovalRequest,
    CallDecided,
    CallFailed,
    CallStarted,
    CodeExecutionDisplay,
    CodeExecutionOutput,
    CodeExecutionOutputChunk,
    RunFailed,
    RunStarted,
    ToolOutput,
)

pytestmark = pytest.mark.anyio


def add(a: int, b: int) -> int:
    return a + b


async def test_the_events_of_a_run(sandbox: str) -> None:
    async with CodeMode(sandbox, tools=[add]) as mode:
        events = [event async for event in mode.stream("print('one')\nx = add(1, 2)\nprint('two')\nx")]
    kinds = [type(event) for event in events]
    assert kinds == [
        RunStarted,
        CodeExecutionOutputChunk,
        CallStarted,
        ToolOutput,
        CodeExecutionOutputChunk,
        CodeExecutionOutput,
    ]
    assert len({event.run_id for event in events}) == 1
    started, output = events[2], events[3]
    assert isinstance(started, CallStarted)
    assert isinstance(output, ToolOutput)
    assert started.call.call_id == output.call_id
    assert (output.content, output.tool_name) == (3, "add")
    assert isinstance(events[-1], CodeExecutionOutput)
    assert events[-1].text == "one\ntwo\n3"
    assert events[-1].result is not None
    assert events[-1].result.output == 3


async def test_approval_in_the_stream(sandbox: str) -> None:
    code = """
seen = []
for i in range(3):
    try:
        seen.append(add(i, i))
    except RuntimeError as e:
        seen.append('no')
seen
"""
    seen: list[AgentEvent] = []
    async with CodeMode(sandbox, tools=[tool(add, approval="ask")]) as mode:
        async for event in mode.stream(code):
            seen.append(event)
            if isinstance(event, ApprovalRequest):
                event.approve(Deny("odd") if event.tool_args["a"] == 1 else True)
    last = seen[-1]
    assert isinstance(last, CodeExecutionOutput)
    assert last.result is not None
    assert last.result.output == [0, "no", 4]
    assert [e.decision for e in seen if isinstance(e, CallDecided)][1] == Deny("odd")
    failed = [e for e in seen if isinstance(e, CallFailed)]
    assert [(e.denied, e.error) for e in failed] == [(True, "odd")]


async def test_an_approval_request_is_answered_once() -> None:
    request = ApprovalRequest("f", {"x": 1}, call_id="1")
    request.approve(True)
    with pytest.raises(RuntimeError, match="the call 1 was already decided"):
        request.approve(False)
    assert await request.approved() is True


async def test_failing_code_is_told_as_an_event(sandbox: str) -> None:
    async with CodeMode(sandbox) as mode:
        events = [event async for event in mode.stream("print('x')\n1/0")]
    assert isinstance(events[-1], RunFailed)
    assert "ZeroDivisionError" in str(events[-1].error)


async def test_leaving_the_stream_early_kills_the_code(sandbox: str) -> None:
    async with CodeMode(sandbox) as mode:
        stream = mode.stream("print('x')\nwhile True: pass")
        async for event in stream:
            if isinstance(event, CodeExecutionOutputChunk | RunStarted):
                break
        await asyncio.wait_for(stream.aclose(), 5)
        assert (await mode.run("1")).output == 1


async def test_a_listener_sees_the_events_of_plain_runs(sandbox: str) -> None:
    seen: list[Any] = []
    async with CodeMode(sandbox, tools=[add], on_event=seen.append) as mode:
        await mode.run("add(1, 2)")
    assert [type(e) for e in seen] == [RunStarted, CallStarted, ToolOutput, CodeExecutionOutput]


async def test_displays_are_events_and_come_once_over_a_pause() -> None:
    code = (
        "class Html:\n    def _repr_html_(self): return '<b/>'\n    def __repr__(self): return 'bold'\n"
        "display(Html())\nask()\nHtml()"
    )
    told: list[str] = []

    def on_event(event: AgentEvent) -> None:
        if isinstance(event, CodeExecutionDisplay):
            told.append(event.display.name)
        elif isinstance(event, CodeExecutionOutput):
            told.append(f"{event.text!r}")

    @tool(approval="ask")
    def ask() -> None:
        """Ask."""

    async with CodeMode("process", tools=[ask], on_event=on_event) as mode:
        with pytest.raises(ApprovalRequired) as paused:
            await mode.run(code)
        assert told == ["display-1.html"]
        [call] = paused.value.pending
        result = await mode.resume(paused.value.run_id, {call.call_id: True})
    assert told == ["display-1.html", "display-2.html", "'bold\\nbold\\n'"]
    assert [display.name for display in result.displays] == ["display-1.html", "display-2.html"]
