"""A conversation told as blocks."""

from pathlib import Path

import pytest

from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import Allow, Deny, Edit, Ran
from hatchway.core.events import (
    ApprovalRequest,
    CallDecided,
    CallFailed,
    CallStarted,
    Cancelled,
    CodeExecutionOutput,
    CodeExecutionOutputChunk,
    Compacted,
    Response,
    ResponseChunk,
    Retrying,
    RunResumed,
    RunStarted,
    Thoughts,
    ToolOutput,
)
from hatchway.trace.blocks import Block, Code, Line, Prose, Said
from hatchway.trace.dialogue import Dialogue
from hatchway.trace.page import page
from hatchway.trace.terminal import picture

pytestmark = pytest.mark.anyio


def text_of(block: Block) -> str:
    return "".join(part.text for part in block.parts) if isinstance(block, Line) else getattr(block, "text", "")


async def test_an_action_that_was_asked_about_is_shown_once() -> None:
    dialogue = Dialogue()
    asked = dialogue.told(ApprovalRequest("execute_code", {"code": "f(1)"}, kind="code"))
    assert asked == [Code(text="f(1)", about="asks to run")]
    assert dialogue.told(RunStarted("f(1)", run_id="a")) == []
    assert [type(block) for block in dialogue.told(RunStarted("f(1)", run_id="b"))] == [Code]


async def test_a_call_that_was_under_way_is_told_before_the_question() -> None:
    dialogue = Dialogue()
    dialogue.told(RunStarted("f(1)", run_id="a"))
    dialogue.told(CallStarted(FunctionCall(call_id="1", function_name="f", kwargs={"x": 1}), run_id="a"))
    first, second = dialogue.told(ApprovalRequest("g", {"y": 2}, run_id="a"))
    assert text_of(first) == "f(x=1)"
    assert second == Code(text="g(\n    y=2,\n)", about="asks for approval", what="g")


async def test_a_file_edit_shows_its_diff() -> None:
    [block] = Dialogue().told(ApprovalRequest("edit", {"path": "a"}, diff="-a\n+b\x1b[2J"))
    assert block == Code(text="-a\n+b\\x1b[2J", about="asks for approval", what="edit", language="diff")


async def test_what_subagents_do_is_marked() -> None:
    dialogue = Dialogue()
    dialogue.said("go")
    assert [text_of(block) for block in dialogue.told(Response("hi", agent_id="main"))] == ["hi"]
    assert [text_of(block) for block in dialogue.told(Response("ho", agent_id="sub-1"))] == ["sub-1", "ho"]
    assert [text_of(block) for block in dialogue.told(Thoughts("so", agent_id="sub-1"))] == ["so"]
    assert [text_of(block) for block in dialogue.told(Response("ha", agent_id="main"))] == ["main", "ha"]


async def test_runs_of_two_agents_do_not_mix() -> None:
    dialogue = Dialogue()
    for run in ("a", "b"):
        dialogue.told(RunStarted(f"{run}()", run_id=run))
        call = FunctionCall(call_id="1", function_name=run)
        dialogue.told(CallStarted(call, run_id=run))
    for run in ("a", "b"):
        [line] = dialogue.told(ToolOutput(1, call_id="1", tool_name=run, run_id=run))
        assert text_of(line).startswith(f"{run}() → 1")


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (Cancelled("cancelled"), "cancelled"),
        (Cancelled("rejected"), "refused: the turn is over"),
        (Cancelled("max_turns"), "the turn had as many rounds as it may"),
        (Compacted(120_000, 9_000), "the conversation was summed up: 120,000 → 9,000 tokens"),
        (Retrying("the vendor limits the rate", 1.5), "the vendor limits the rate; asks again in 1.50 s"),
        (ToolOutput("two\nlines", tool_name="read"), "read → two lines"),
    ],
)
async def test_notes(event: object, said: str) -> None:
    assert [text_of(block) for block in Dialogue().told(event)] == [said]  # pyright: ignore[reportArgumentType]


async def test_times_of_a_run_whose_start_was_elsewhere_begin_with_what_is_seen_of_it() -> None:
    dialogue = Dialogue()
    [line] = dialogue.told(RunResumed(2, run_id="a", at=1000.0))
    assert isinstance(line, Line)
    assert line.at == 0.0
    [failed] = dialogue.told(CallFailed("no such tool", tool_name="x", at=2000.0))
    assert isinstance(failed, Line)
    assert failed.at is None  # a call of the model is in no run


async def test_the_code_of_a_run_that_began_in_a_process_that_is_gone_is_shown() -> None:
    dialogue = Dialogue()
    line, code = dialogue.told(RunResumed(2, code="pay(9)\x1b", run_id="a", at=1000.0))
    assert text_of(line) == "goes on, taken up for the second time"
    assert isinstance(code, Code)
    assert code.text == "pay(9)\\x1b"
    dialogue.told(RunStarted("pay(1)", run_id="b"))
    assert [text_of(block) for block in dialogue.told(RunResumed(2, code="pay(1)", run_id="b"))] == [
        "goes on, taken up for the second time"
    ]


async def test_where_a_picture_was_saved_is_told() -> None:
    dialogue = Dialogue()
    saved, done = dialogue.told(CodeExecutionOutput(None, [Path("/w/images/a.png")], run_id="a"))
    assert text_of(saved) == "/w/images/a.png  saved"
    assert text_of(done) == "done"


async def test_a_call_that_is_said_to_have_run_is_told_with_its_arguments() -> None:
    dialogue = Dialogue()
    request = ApprovalRequest("pay", {"euros": 9}, call_id="1.1", run_id="a", in_doubt=True)
    dialogue.decided(request, Ran("paid"))
    assert any(isinstance(block, Code) for block in dialogue.told(RunResumed(2, code="pay(9)", run_id="a")))
    [line] = dialogue.told(ToolOutput("paid", call_id="1.1", tool_name="pay", run_id="a"))
    assert text_of(line) == "pay(euros=9) → 'paid'"


async def test_a_call_in_doubt_is_asked_about_below_the_action_that_made_it() -> None:
    dialogue = Dialogue()
    request = ApprovalRequest("pay", {"euros": 9}, call_id="1.1", run_id="a", in_doubt=True, code="pay(9)")
    action, asked = dialogue.told(request)
    assert isinstance(action, Code)
    assert (action.text, action.about) == ("pay(9)", "")
    assert isinstance(asked, Code)
    assert not [b for b in dialogue.told(RunResumed(2, code="pay(9)", run_id="a")) if isinstance(b, Code)]


async def test_a_denied_call_of_the_model_is_told_once_with_its_arguments() -> None:
    dialogue = Dialogue()
    call = FunctionCall(call_id="c1", function_name="write_file", kwargs={"path": "x.md"})
    assert dialogue.told(CallDecided(call, decision=Deny("no docs"), by="callback")) == []
    [line] = dialogue.told(CallFailed("no docs", call_id="c1", tool_name="write_file", denied=True))
    assert text_of(line) == "write_file(path='x.md') → no docs"
    request = ApprovalRequest("write_file", {"path": "x.md"}, call_id="c1", kind="tool")
    dialogue.decided(request, Deny("no docs"))  # who was asked has read it
    assert dialogue.told(CallFailed("no docs", call_id="c1", tool_name="write_file", denied=True)) == []
    dialogue.allowed(ApprovalRequest("wait", {"seconds": 20}, call_id="c2", kind="tool"))
    [line] = dialogue.told(CallFailed("no answer", call_id="c2", tool_name="wait"))
    assert text_of(line) == "wait(seconds=20) → no answer"


async def test_a_call_of_the_model_that_nobody_was_asked_about_is_told_with_its_arguments() -> None:
    dialogue = Dialogue()
    call = FunctionCall(call_id="c1", function_name="read_file", kwargs={"path": "x.md"})
    assert dialogue.told(CallStarted(call)) == []
    [line] = dialogue.told(ToolOutput("hello", call_id="c1", tool_name="read_file"))
    assert text_of(line) == "read_file(path='x.md') → hello"


@pytest.mark.parametrize(
    ("decision", "told"),
    [(Allow(), "read_file → hello"), (Edit({"path": "y.md"}), "read_file(path='y.md') → hello")],
)
async def test_a_call_that_was_asked_about_is_told_with_its_arguments_where_they_were_changed(
    decision: Allow | Edit, told: str
) -> None:
    dialogue = Dialogue()
    request = ApprovalRequest("read_file", {"path": "x.md"}, call_id="c1", kind="tool")
    dialogue.told(request)
    dialogue.decided(request, decision)
    args = decision.args if isinstance(decision, Edit) else request.tool_args
    dialogue.told(CallStarted(FunctionCall(call_id="c1", function_name="read_file", kwargs=args)))
    [line] = dialogue.told(ToolOutput("hello", call_id="c1", tool_name="read_file"))
    assert text_of(line) == told


async def test_decisions() -> None:
    dialogue = Dialogue()
    request = ApprovalRequest("send", {})
    assert text_of(dialogue.decided(request, Deny("later"))[0]) == "send denied by you: later"
    assert text_of(dialogue.decided(request, Ran())[0]) == "send did run"


async def test_pieces_of_a_reply_have_no_blocks_and_an_empty_reply_none() -> None:
    dialogue = Dialogue()
    assert dialogue.told(ResponseChunk("a")) == []
    assert dialogue.told(Response(" ")) == []


async def test_a_recording_loads_and_runs_nothing() -> None:
    hostile = "<script>alert(1)</script> ![x](http://evil/x.png) [l](javascript:alert(1)) **b** \x1b[2J"
    blocks = [*Dialogue().said(hostile), Prose(text=hostile), Code(text=hostile, language="diff")]
    html = page(blocks, title=hostile)
    assert "<script" not in html
    assert "<img" not in html
    assert 'href="javascript' not in html
    assert "<strong>b</strong>" in html
    svg = picture([Prose(text="hello **bold**"), Said(text="x", source="stdout")], title="t")
    assert "bold" in svg
    assert "**" not in svg
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")


async def test_the_record_of_a_run_is_let_go_when_it_ends() -> None:
    dialogue = Dialogue()
    for number in range(3):
        dialogue.told(RunStarted("x", run_id=str(number)))
        dialogue.told(CodeExecutionOutputChunk("y", run_id=str(number)))
        dialogue.told(CodeExecutionOutput("y", run_id=str(number)))
    assert dialogue._runs == {}  # pyright: ignore[reportPrivateUsage]
