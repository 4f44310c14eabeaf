"""Events told as blocks: each fact once, in order, safe to show, also when somebody watches live."""

from typing import Any

import pytest

from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import Allow, Deny, Edit
from hatchway.core.errors import CodeRuntimeError
from hatchway.core.events import (
    AgentEvent,
    CallDecided,
    CallFailed,
    CallStarted,
    CodeExecutionOutput,
    CodeExecutionOutputChunk,
    RunFailed,
    RunPaused,
    RunResumed,
    RunStarted,
    ToolOutput,
)
from hatchway.core.results import ExecFile, ExecutionResult
from hatchway.trace.blocks import Block, Code, Line, Picture, Said
from hatchway.trace.record import Record

START = RunStarted("1", "monty", "language", run_id="r", at=100.0)


def call(call_id: str = "1", name: str = "f", **kwargs: Any) -> FunctionCall:
    """A call."""
    return FunctionCall(call_id=call_id, function_name=name, kwargs=kwargs)


def texts(blocks: list[Block]) -> list[str]:
    """Each block on a line of text."""
    told: list[str] = []
    for block in blocks:
        match block:
            case Line():
                at = "" if block.at is None else f"{block.at:.1f} "
                told.append(f"{at}{block.mark} {''.join(part.text for part in block.parts)}")
            case Said(text=text, source=source):
                told.append(f"{source}: {text}")
            case Code(text=text):
                told.append(f"code: {text}")
            case Picture(name=name):
                told.append(f"picture: {name}")
    return told


def after_start(*events: AgentEvent) -> list[str]:
    """What is told after the head."""
    return texts(Record().all([START, *events]))[2:]


def done(call_id: str, value: Any, at: float) -> ToolOutput:
    """A tool returned."""
    return ToolOutput(value, call_id=call_id, tool_name="f", seconds=0.5, at=at)


def test_a_call_that_ends_at_once_is_one_line_at_its_beginning() -> None:
    assert after_start(CallStarted(call(x=1), at=101.0), done("1", 2, 101.5)) == ["1.0 ✓ f(x=1) → 2  500 ms"]


def test_calls_at_the_same_time_are_told_as_they_begin_and_end() -> None:
    told = after_start(
        CallStarted(call("1", x=1), at=101.0),
        CallStarted(call("2", x=2), at=101.1),
        done("2", "b", 102.0),
        done("1", "a", 103.0),
    )
    assert told == ["1.0 → f(x=1)", "1.1 ✓ f(x=2) → 'b'  500 ms", "3.0 ✓ f(x=1) → 'a'  500 ms"]


def test_who_watches_live_sees_a_call_begin() -> None:
    record = Record()
    assert [*record.told(START), *record.told(CallStarted(call(), at=101.0))][2:] == []
    assert texts(record.rest()) == ["1.0 → f()"]
    assert texts(record.told(done("1", None, 109.0))) == ["9.0 ✓ f() → None  500 ms"]
    assert record.rest() == []


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        (Allow(), "1.0 ◆ f(x=1) allowed by a person"),
        (Edit({"x": 2}), "1.0 ◆ f(x=1) changed by a person to f(x=2)"),
        (Deny("no"), "1.0 ◆ f(x=1) denied by a person: no"),
        (Deny(), "1.0 ◆ f(x=1) denied by a person"),
    ],
)
def test_a_decision_says_who_made_it(decision: Any, told: str) -> None:
    assert after_start(CallDecided(call(x=1), decision=decision, by="person", at=101.0)) == [told]


def test_a_refusal_and_its_reason_are_one_line() -> None:
    told = after_start(
        CallDecided(call(x=1), decision=Deny("no"), by="rule", at=101.0),
        CallFailed("no", call_id="1", tool_name="f", denied=True, at=101.1),
    )
    assert told == ["1.0 ⊘ f(x=1) → no  (a rule)"]


def test_a_call_nobody_heard_of_before_can_fail() -> None:
    assert after_start(CallFailed("no such tool", call_id="9", tool_name="g", at=100.5)) == ["0.5 ✗ g() → no such tool"]


def test_a_pause_names_what_it_waits_for_and_what_is_in_doubt() -> None:
    told = after_start(
        RunPaused((call("1.1", x=1), call("1.2", x=2)), at=101.0),
        RunResumed(2, at=102.0),
        CallStarted(call("1.3"), at=103.0),
        RunPaused((), at=104.0),
        RunResumed(3, at=105.0),
    )
    assert told == [
        "1.0 ‖ paused: 2 calls wait for a decision",
        "? f(x=1) waits  call 1.1",
        "? f(x=2) waits  call 1.2",
        "2.0 ▶ goes on, taken up for the second time",
        "3.0 → f()",
        "4.0 ‖ paused: nobody knows whether 1 call ran",
        "! f() is in doubt  call 1.3",
        "5.0 ▶ goes on, taken up for the third time",
    ]


def test_output_in_pieces_is_one_block_and_streams_stay_apart() -> None:
    pieces = [CodeExecutionOutputChunk(text, at=101.0) for text in ("a", "b\n", "c")]
    told = after_start(*pieces, CodeExecutionOutputChunk("!", stream="stderr", at=101.0))
    assert told == ["stdout: ab\nc", "stderr: !"]


def test_how_it_ended() -> None:
    files = (ExecFile(name="a\x1b.bin", content=b"123"),)
    result = ExecutionResult(output={"a": 1}, files=files, images=(ExecFile(name="p.png", content=b"1"),))
    assert after_start(CodeExecutionOutput(None, result=result, at=101.0)) == [
        "= {'a': 1}",
        "picture: p.png",
        "+ a\\x1b.bin  3 B  application/octet-stream",
        "1.0 ■ done",
    ]
    assert after_start(RunFailed(CodeRuntimeError("boom\x1b"), at=101.0)) == [
        "1.0 ✗ CodeRuntimeError",
        "error: boom\\x1b\n",
    ]


def test_what_is_too_long_for_a_line_is_kept_whole_beside_it() -> None:
    long, value = "a" * 3000, ["b" * 3000]
    (line,) = Record().all([CallStarted(call(x=long), at=1.0), done("1", value, 2.0)])
    assert isinstance(line, Line)
    assert len("".join(part.text for part in line.parts)) < 500
    assert dict(line.whole) == {"call": f"f(\n    x={long!r},\n)", "value": repr(value)}


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\u202e", "\x00", "\x9b", "\ufffe", "\ud800", "\u2028", "\r"])
def test_nothing_a_terminal_or_xml_would_act_on_is_left(hostile: str) -> None:
    named = call(hostile, hostile, **{hostile: hostile})
    blocks = Record().all(
        [
            RunStarted(hostile, hostile, hostile, run_id=hostile, at=0.0),
            CodeExecutionOutputChunk(hostile, at=0.0),
            CallDecided(named, decision=Deny(hostile), by="rule", at=0.0),
            CallStarted(named, at=0.0),
            CallFailed(hostile, call_id=hostile, tool_name=hostile, at=0.0),
            CallDecided(named, decision=Edit({hostile: hostile}), by="rule", at=0.0),
            RunPaused((named,), at=0.0),
            RunFailed(CodeRuntimeError(hostile), at=0.0),
        ]
    )
    assert len(blocks) > 8
    assert hostile not in repr([texts(blocks), [block.whole for block in blocks if isinstance(block, Line)]])
    assert all(hostile not in text for text in texts(blocks))


def test_a_value_python_refuses_to_write_is_named() -> None:
    told = after_start(CallStarted(call(n=10**5000), at=100.0), done("1", [10**5000], 100.0))
    assert told[0].startswith("0.0 ✓ f(n=<int of 16610 bits>) → [<int of 16610 bits>]")
