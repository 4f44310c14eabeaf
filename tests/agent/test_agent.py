"""The agent on a scripted model, in the jail: what it does, asks and tells."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from hatchway.agent import (
    Agent,
    AgentEvent,
    ApprovalRequest,
    Cancelled,
    CodeExecutionOutput,
    Response,
    ResponseChunk,
    Thoughts,
)
from hatchway.core.errors import InvalidSetting
from hatchway.core.events import CallFailed, RunFailed, ToolOutput
from hatchway.testing import Call, Reply, ScriptedAgentModel, Thinking

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("agent_jail"),
]


class Ledger:
    """Tools with an effect that can be counted."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    def pay(self, euros: int) -> str:
        """Pay."""
        self.paid.append(euros)
        return f"paid {euros}"


def made(script: list, workspace: Path, **settings) -> tuple[Agent, ScriptedAgentModel]:
    model = ScriptedAgentModel(script)
    return Agent(model, working_dir=workspace, enable_subagents=False, **settings), model


async def all_of(
    events: AsyncIterator[AgentEvent], answer: Callable[[ApprovalRequest], None] = lambda asked: asked.approve()
) -> list[AgentEvent]:
    found: list[AgentEvent] = []
    async for event in events:
        found.append(event)
        if isinstance(event, ApprovalRequest):
            answer(event)
    return found


def only(kind: type, events: list[AgentEvent]) -> list:
    return [event for event in events if isinstance(event, kind)]


def told(model: ScriptedAgentModel, request: int = -1) -> str:
    """What the model was told last, as text."""
    return "\n".join(str(part.content) for part in model.seen[request][-1].parts)


async def test_a_turn_asks_for_the_action_and_for_each_call_and_state_persists(tmp_path: Path) -> None:
    ledger = Ledger()
    script = [
        [Thinking("hm"), Reply("Paying.", code="x = 2\nprint(pay(x))")],
        "Paid two.",
        Reply(code="x + 40"),
        "Still there.",
    ]
    agent, model = made(script, tmp_path, tools=[ledger.pay], system_prompt="Be brief.")
    async with agent:
        first = await all_of(agent.stream("pay two"))
        second = await all_of(agent.stream("and x?"))
    asked = only(ApprovalRequest, first)
    assert [(each.kind, each.tool_name, dict(each.tool_args)) for each in asked] == [
        ("code", "execute_code", {"code": "x = 2\nprint(pay(x))"}),
        ("call", "pay", {"euros": 2}),
    ]
    assert {event.agent_id for event in first} == {"main"}
    assert asked[1].run_id == only(CodeExecutionOutput, first)[0].run_id != ""
    assert [event.content for event in only(Thoughts, first)] == ["hm"]
    assert [event.content for event in only(Response, first)] == ["Paying.", "Paid two."]
    assert "".join(event.content for event in only(ResponseChunk, first)) == "Paying.Paid two."
    assert only(CodeExecutionOutput, first)[0].text == "paid 2\n"
    assert only(CodeExecutionOutput, second)[0].text == "42"
    assert ledger.paid == [2]
    assert "Be brief." in (model.seen[0][-1].instructions or "")
    assert "def pay(" in (model.seen[0][-1].instructions or "")
    assert len(agent.messages) == 8


@pytest.mark.parametrize(
    "swallow",
    [
        "try:\n    pay(1)\nexcept BaseException:\n    print('went on')\npay(2)",
        "while True:\n    try:\n        pay(1)\n    except BaseException:\n        pass",
        "pay(1)",
        "print('ApprovalRejectedError: ToolDenied: the user said no')\npay(1)",
    ],
    ids=["caught", "caught for ever", "not caught", "printed"],
)
async def test_a_bare_no_inside_the_code_ends_the_turn_whatever_the_code_does(swallow: str, tmp_path: Path) -> None:
    ledger = Ledger()
    agent, _ = made([Reply(code=swallow)], tmp_path, tools=[ledger.pay])
    async with agent:
        events = await all_of(agent.stream("pay"), lambda asked: asked.approve(asked.kind == "code"))
    assert events[-1] == Cancelled("rejected", agent_id="main", at=events[-1].at)
    assert len(only(ApprovalRequest, events)) == 2
    assert ledger.paid == []
    assert agent.messages[-1].parts[0].outcome == "denied"


async def test_a_no_to_one_of_several_calls_at_once_is_a_no_to_the_action(tmp_path: Path) -> None:
    paid: list[int] = []

    async def pay(euros: int) -> None:
        """Pay."""
        paid.append(euros)

    code = "import asyncio\nawait asyncio.gather(pay(1), pay(2), pay(3), return_exceptions=True)\nawait pay(4)"
    agent, _ = made([Reply(code=code)], tmp_path, tools=[pay])
    async with agent:
        calls: list[ApprovalRequest] = []
        events: list[AgentEvent] = []
        async for event in agent.stream("pay"):
            events.append(event)
            if isinstance(event, ApprovalRequest) and event.kind == "code":
                event.approve()
            elif isinstance(event, ApprovalRequest):
                calls.append(event)
                if len(calls) == 3:
                    calls[1].approve(False)
    assert [dict(each.tool_args) for each in calls] == [{"euros": 1}, {"euros": 2}, {"euros": 3}]
    assert isinstance(events[-1], Cancelled)
    assert paid == []


async def test_words_of_a_denial_that_were_only_printed_end_nothing(tmp_path: Path) -> None:
    agent, model = made([Reply(code="print('ToolDenied: the user said no')"), "Fine."], tmp_path)
    async with agent:
        events = await all_of(agent.stream("print"))
    assert only(Response, events)[-1].content == "Fine."
    assert "the user said no" in told(model)


async def test_a_no_with_a_reason_is_told_to_the_model_which_goes_on(tmp_path: Path) -> None:
    ledger = Ledger()
    script = [Reply(code="pay(1)"), Reply(code="pay(2)"), "Paid two."]
    agent, model = made(script, tmp_path, tools=[ledger.pay])

    def answer(asked: ApprovalRequest) -> None:
        if asked.tool_args == {"euros": 1}:
            asked.approve(False, "pay two instead")
        else:
            asked.approve()

    async with agent:
        events = await all_of(agent.stream("pay"), answer)
    assert ledger.paid == [2]
    assert told(model, 1) == "The user rejected pay: pay two instead\nThe code action was stopped there."
    assert only(Response, events)[-1].content == "Paid two."


async def test_an_action_can_be_refused_and_edited(tmp_path: Path) -> None:
    script = [Reply(code="1 + 1"), Reply(code="2 + 2"), "Four, or five."]
    agent, model = made(script, tmp_path)
    answers = iter([lambda asked: asked.approve(False, "use two"), lambda asked: asked.approve(edit={"code": "2 + 3"})])
    async with agent:
        events = await all_of(agent.stream("add"), lambda asked: next(answers)(asked))
    assert [event.text for event in only(CodeExecutionOutput, events)] == ["5"]
    assert told(model, 1) == "The user rejected this code action: use two"
    assert told(model, 2) == "The user changed the code. This was run:\n2 + 3\n\nIts output:\n5"


async def test_arguments_of_a_call_can_be_edited(tmp_path: Path) -> None:
    ledger = Ledger()
    agent, _ = made([Reply(code="pay(1)"), "ok"], tmp_path, tools=[ledger.pay])
    async with agent:
        await all_of(
            agent.stream("pay"),
            lambda asked: asked.approve() if asked.kind == "code" else asked.approve(edit={"euros": 7}),
        )
    assert ledger.paid == [7]


async def test_no_answer_in_time_fails_the_call_and_the_code_sees_it(tmp_path: Path) -> None:
    ledger = Ledger()
    code = "try:\n    pay(1)\nexcept ToolDenied as e:\n    print(e)"
    agent, model = made([Reply(code=code), "ok"], tmp_path, tools=[ledger.pay], approval_timeout=0.3)
    async with agent:
        await all_of(agent.stream("pay"), lambda asked: asked.approve() if asked.kind == "code" else None)
    assert told(model) == (
        "nobody decided within 0.3 s\n\n"
        "Calls it made that were denied, and not run:\n- pay(euros=1) denied: nobody decided within 0.3 s"
    )
    assert ledger.paid == []


async def test_waiting_for_approval_does_not_count_against_the_execution_timeout(tmp_path: Path) -> None:
    ledger = Ledger()
    agent, model = made([Reply(code="pay(1)"), "ok"], tmp_path, tools=[ledger.pay], execution_timeout=1.0)
    async with agent:
        async for event in agent.stream("pay"):
            if isinstance(event, ApprovalRequest):
                await asyncio.sleep(1.5 if event.kind == "call" else 0)
                event.approve()
    assert ledger.paid == [1]
    assert told(model) == "'paid 1'"


async def test_code_that_runs_too_long_is_told_with_the_loss_of_its_state(tmp_path: Path) -> None:
    script = [Reply(code="x = 1\nwhile True: pass"), Reply(code="x"), "gone"]
    agent, model = made(script, tmp_path, execution_timeout=0.5)
    async with agent:
        events = await all_of(agent.stream("loop"))
    late, _ = only(RunFailed, events)
    assert late.error.hint == "let the code do less, or raise execution_timeout (--execution-timeout)"
    assert "Time limit reached" in told(model, 1)
    assert "names and imports of earlier actions are lost" in told(model, 1)
    assert "name 'x' is not defined" in told(model, 2)


async def test_a_limit_is_told_without_a_setting_an_agent_does_not_have(tmp_path: Path) -> None:
    agent, model = made([Reply(code="text = 'a' * 3 * 1024**3"), "ok"], tmp_path)
    async with agent:
        events = await all_of(agent.stream("fill"))
    assert only(RunFailed, events)[0].error.hint == "let the code take less, or do it in several actions"
    assert "Limits." not in told(model)


async def test_the_reason_of_a_no_is_text_and_an_empty_one_is_none(tmp_path: Path) -> None:
    def answer(asked: ApprovalRequest) -> None:
        with pytest.raises(TypeError, match=r"the reason of a no is text for the model, not 5"):
            asked.approve(False, 5)  # type: ignore[arg-type]
        asked.approve(False, "  ")

    agent, model = made([Reply(code="1")], tmp_path)
    async with agent:
        events = await all_of(agent.stream("go"), answer)
    assert events[-1].reason == "rejected"
    assert len(model.seen) == 1


@pytest.mark.parametrize("given", [None, 3])
async def test_what_is_no_sandbox_is_not_taken_for_none(given: Any, tmp_path: Path) -> None:
    agent, _ = made([], tmp_path, sandbox=given)
    with pytest.raises(InvalidSetting) as caught:
        await agent.start()
    assert caught.value.message == f"sandbox is True, False, a name or a CodeSandbox, not {given!r}"


async def test_code_that_goes_on_after_a_no_does_not_flood_who_listens(tmp_path: Path) -> None:
    code = "while True:\n    try: pay(1)\n    except BaseException: pass"
    agent, _ = made([Reply(code=code), "ok"], tmp_path, tools=[Ledger().pay])
    async with agent:
        events = await all_of(agent.stream("pay"), lambda asked: asked.approve(asked.kind == "code"))
    assert 1 < len(only(CallFailed, events)) <= 20


async def test_cancel_keeps_what_there_is_and_the_conversation_goes_on(tmp_path: Path) -> None:
    agent, model = made([Reply("On it.", code="print('begun', flush=True)\nwhile True: pass"), "Hello."], tmp_path)
    async with agent:
        found: list[AgentEvent] = []
        async for event in agent.stream("loop"):
            found.append(event)
            if isinstance(event, ApprovalRequest):
                event.approve()
            if type(event).__name__ == "CodeExecutionOutputChunk":
                await agent.cancel()
        assert found[-1] == Cancelled("cancelled", agent_id="main", at=found[-1].at)
        events = await all_of(agent.stream("hello?"))
    assert only(Response, events)[0].content == "Hello."
    assert model.seen[-1][-2].parts[0].content == "cancelled by the user"


async def test_max_turns_counts_tool_rounds(tmp_path: Path) -> None:
    agent, _ = made([Reply(code="1"), Reply(code="2"), Reply(code="3")], tmp_path)
    async with agent:
        events = await all_of(agent.stream("count", max_turns=2))
    assert [event.text for event in only(CodeExecutionOutput, events)] == ["1", "2"]
    assert events[-1] == Cancelled("max_turns", agent_id="main", at=events[-1].at)


@pytest.mark.parametrize("given", ["3", -1, 1.5, True])
async def test_rounds_that_are_no_number_are_refused_before_the_model_is_asked(given: Any, tmp_path: Path) -> None:
    agent, model = made(["never"], tmp_path)
    async with agent:
        with pytest.raises(InvalidSetting, match="max_turns is a number of 0 or more, not"):
            agent.stream("count", max_turns=given)
    assert not model.seen
    assert not agent.messages


async def test_malformed_and_unknown_tool_calls_are_told_to_the_model(tmp_path: Path) -> None:
    script = [
        [Call("execute_code", '{"code": '), Call("nonsense", {}), Call("execute_code", {"source": "1"})],
        "I see.",
    ]
    agent, model = made(script, tmp_path)
    async with agent:
        events = await all_of(agent.stream("go"))
    assert len(only(CallFailed, events)) == 3
    assert not only(ApprovalRequest, events)
    said = told(model)
    assert "the arguments are no JSON object" in said
    assert "there is no tool 'nonsense'; there are: execute_code, read_file, write_file, edit_file" in said
    assert 'execute_code takes exactly {"code": "<Python source>"}' in said


async def test_file_tools_ask_with_a_diff_and_write_what_was_shown(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    script = [
        Call("read_file", {"path": "a.txt"}),
        Call("edit_file", {"path": "a.txt", "edits": [{"old": "two", "new": "2"}]}),
        Call("write_file", {"path": "sub/b.txt", "content": "new\n"}),
        "done",
    ]
    agent, _model = made(script, tmp_path)
    async with agent:
        events = await all_of(agent.stream("edit"))
    assert [event.diff for event in only(ApprovalRequest, events)] == [
        "",
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
        "--- a/sub/b.txt\n+++ b/sub/b.txt\n@@ -0,0 +1 @@\n+new\n",
    ]
    assert (tmp_path / "a.txt").read_text() == "one\n2\n"
    assert (tmp_path / "sub/b.txt").read_text() == "new\n"
    assert next(event.content for event in only(ToolOutput, events)) == "one\ntwo\n"


async def test_a_loop_that_is_left_ends_its_turn_and_the_next_one_begins(tmp_path: Path) -> None:
    agent, _ = made([Reply(code="print('on', flush=True)\nwhile True: pass"), "Hello."], tmp_path)
    async with agent:
        async for event in agent.stream("loop"):
            if isinstance(event, ApprovalRequest):
                event.approve()
            if type(event).__name__ == "CodeExecutionOutputChunk":
                break
        events = await all_of(agent.stream("hello?"))
    assert only(Response, events)[0].content == "Hello."


async def test_two_turns_at_once_are_refused(tmp_path: Path) -> None:
    agent, _ = made([Reply(code="1"), "x"], tmp_path)
    async with agent:
        stream = agent.stream("a")
        await anext(stream)
        with pytest.raises(RuntimeError, match="a turn is under way"):
            await anext(agent.stream("b"))
        await stream.aclose()
    assert agent.messages[-1].parts[0].outcome == "interrupted"


def test_without_the_extra_it_says_how_to_get_it(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['pydantic_ai'] = None\nfrom hatchway import HatchwayError\n"
        "try: from hatchway.agent import Agent\nexcept HatchwayError as e: print(e)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (ran.stderr, ran.stdout) == (
        "",
        "Pydantic AI, which speaks with models, is not installed\npip install 'hatchway[agent]'\n",
    )
