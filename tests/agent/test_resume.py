"""A killed agent loses nothing: pending approvals are asked again, what was done is not done twice."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hatchway.agent import Agent, AgentEvent, ApprovalRequest, CodeExecutionOutput, Response, ResponseChunk
from hatchway.agent.conversations import Conversations
from hatchway.agent.interpreter import LOST
from hatchway.core.decisions import Ran
from hatchway.sandboxes.process.inside import tree
from hatchway.testing import Call, Reply, ScriptedAgentModel
from hatchway.tools.functions import tool

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("agent_jail"),
]

BOTH = "pay(1)\nprint('one paid')\npay(2)\nprint('two paid')"


def script(plan: str) -> ScriptedAgentModel:
    """A model that goes by what was said, so that any process can ask it."""

    def reply(messages: Any) -> Any:
        done = sum(part.part_kind == "tool-return" for message in messages for part in message.parts)
        if plan == "notes":
            return Call("effects_mark", {"number": done}) if done < 2 else "Marked."
        if plan == "nested" and messages[0].parts[0].content == "go":
            return Call("subagent_task", {"prompt": "pay"}) if done < 1 else "Delegated."
        code = BOTH + {"three": "\npay(3)", "failing": "\n1 / 0"}.get(plan, "")
        return [Reply(code="x = 5"), Reply(code=code)][done] if done < 2 else "All paid."

    return ScriptedAgentModel(reply)


def agent_for(workspace: Path, plan: str, conversation: Any) -> Agent:
    """The agent, the same in every process; its tools write their effects to files."""

    @tool
    def pay(euros: int) -> str:
        """Pay."""
        with (workspace / "paid").open("a") as file:
            file.write(f"{euros}\n")
        if (workspace / "die-in-pay").exists() and euros == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        if euros == 3:
            kill_jails()
        return f"paid {euros}"

    servers = {}
    if plan == "notes":
        server = Path(__file__).parent / "effects_server.py"
        servers = {"effects": {"command": sys.executable, "args": [str(server), str(workspace / "marks")]}}
    return Agent(script(plan), working_dir=workspace, tools=[pay], conversation=conversation, mcp_servers=servers)


def kill_jails() -> None:
    """Kill what supervises the code, as a stranger on the machine could."""
    for pid in tree.children(os.getpid()):
        if "keeper.py" in Path(f"/proc/{pid}/cmdline").read_text():
            below = tree.descendants(pid)
            os.kill(pid, signal.SIGKILL)
            while any((seen := tree.stat(each)) is not None and not seen.is_zombie for each in below):
                time.sleep(0.001)


def journal_of(workspace: Path) -> str:
    return str(workspace / ".hatchway" / "journal.db")


async def until_killed(workspace: Path, plan: str, stop_at: str, place: str) -> None:
    """In a process of its own: work, and die where it was told to."""
    with Conversations.open(place) as conversations:
        async with agent_for(workspace, plan, conversations.create(workspace)) as agent:
            async for event in agent.stream("go"):
                if isinstance(event, ApprovalRequest):
                    if stop_at == str(event.tool_args.get("euros", event.tool_args.get("text"))):
                        os.kill(os.getpid(), signal.SIGKILL)
                    event.approve()


async def killed(workspace: Path, plan: str, stop_at: str = "", place: str = "") -> None:
    args = [str(workspace), plan, stop_at, place or journal_of(workspace)]
    child = await asyncio.create_subprocess_exec(sys.executable, __file__, *args)
    assert await child.wait() == -signal.SIGKILL


async def resumed(workspace: Path, plan: str, answer: Any = None, place: str = "") -> tuple[list[AgentEvent], Agent]:
    events: list[AgentEvent] = []
    with Conversations.open(place or journal_of(workspace)) as conversations:
        conversation = conversations.newest(workspace)
        assert conversation is not None
        async with agent_for(workspace, plan, conversation) as agent:
            async for event in agent.resume():
                events.append(event)
                if isinstance(event, ApprovalRequest):
                    event.approve(*(() if answer is None else (answer(event),)))
            assert [event async for event in agent.resume()] == []
            return events, agent


def paid(workspace: Path) -> list[str]:
    return (workspace / "paid").read_text().split()


async def test_killed_at_a_pending_approval_it_is_asked_again_and_effects_are_done_once(
    tmp_path: Path, place: str
) -> None:
    await killed(tmp_path, "calls", stop_at="2", place=place)
    assert paid(tmp_path) == ["1"]
    events, agent = await resumed(tmp_path, "calls", place=place)
    asked = [event for event in events if isinstance(event, ApprovalRequest)]
    assert [(each.kind, dict(each.tool_args), each.in_doubt) for each in asked] == [("call", {"euros": 2}, False)]
    assert paid(tmp_path) == ["1", "2"]
    ended = [event for event in events if isinstance(event, CodeExecutionOutput)]
    assert [event.text for event in ended] == ["one paid\ntwo paid\n"]
    assert isinstance(events[-1], Response)
    assert events[-1].content == "All paid."
    assert len(agent.messages) == 6


async def test_a_sandbox_that_dies_on_the_way_is_led_there_once_more(tmp_path: Path) -> None:
    await killed(tmp_path, "three", stop_at="2")
    events, _ = await resumed(tmp_path, "three")
    assert paid(tmp_path) == ["1", "2", "3"]
    ended = [event.text for event in events if isinstance(event, CodeExecutionOutput)]
    assert ended == ["one paid\ntwo paid\n'paid 3'"]


async def test_killed_while_a_tool_runs_the_call_is_in_doubt(tmp_path: Path) -> None:
    (tmp_path / "die-in-pay").touch()
    await killed(tmp_path, "calls")
    (tmp_path / "die-in-pay").unlink()
    assert paid(tmp_path) == ["1", "2"]
    events, _ = await resumed(tmp_path, "calls", lambda asked: Ran("paid 2") if asked.in_doubt else True)
    asked = [event for event in events if isinstance(event, ApprovalRequest)]
    assert [(dict(each.tool_args), each.in_doubt, each.code) for each in asked] == [({"euros": 2}, True, BOTH)]
    assert paid(tmp_path) == ["1", "2"]
    assert events[-1].content == "All paid."  # type: ignore[attr-defined]


@pytest.mark.parametrize("plan", ["calls", "failing"])
async def test_killed_after_an_action_ended_it_is_shown_told_and_not_done_again(tmp_path: Path, plan: str) -> None:
    with Conversations.open(journal_of(tmp_path)) as conversations:
        conversation = conversations.create(tmp_path)
        async with agent_for(tmp_path, plan, conversation) as agent:
            async for event in agent.stream("go"):
                if isinstance(event, ApprovalRequest):
                    event.approve()
        # as a process leaves it that dies between the end of the second action and the storing of its answer
        *before, reply, answer, _ = conversation.messages()
        await conversation.replace([*before, reply])
        run = conversation.journal.runs()[0]
        now = {"id": reply.parts[0].tool_call_id, "kind": "code", "session": run.session_id, "place": run.place}  # type: ignore[union-attr]
        await conversation.set_open({"limit": None, "done": [], "now": now})
        conversation.release()
    events, agent = await resumed(tmp_path, plan)
    assert paid(tmp_path) == ["1", "2"]
    assert [event for event in events if isinstance(event, ApprovalRequest)] == []
    shown = [event for event in events if not isinstance(event, ResponseChunk)]
    calls = ["CallDecided", "CallStarted", "ToolOutput", "CodeExecutionOutputChunk"] * 2
    end = "CodeExecutionOutput" if plan == "calls" else "RunFailed"
    assert [type(event).__name__ for event in shown] == ["RunStarted", *calls, end, "Response"]
    assert {event.agent_id for event in shown} == {"main"}
    told = agent.messages[-2].parts[0].content  # type: ignore[union-attr]
    assert told == f"{answer.parts[0].content}\n\n{LOST}"  # type: ignore[union-attr]


async def test_killed_while_the_model_calls_a_tool_itself_it_is_in_doubt(tmp_path: Path) -> None:
    with Conversations.open(tmp_path / ".hatchway" / "journal.db") as conversations:
        conversation = conversations.create(tmp_path)
        async with agent_for(tmp_path, "notes", conversation) as agent:
            async for event in agent.stream("go"):
                if isinstance(event, ApprovalRequest):
                    event.approve()
                if type(event).__name__ == "ToolOutput":
                    break
    # as a process leaves it that dies in the second call: the answer of the first is there, of the second nobody knows
    with Conversations.open(tmp_path / ".hatchway" / "journal.db") as conversations:
        conversation = conversations.newest(tmp_path)
        assert conversation is not None
        prompt, reply, *_ = conversation.messages()
        await conversation.replace([prompt, reply])
        now = {"id": reply.parts[0].tool_call_id, "kind": "tool", "args": {"number": 0}}  # type: ignore[union-attr]
        await conversation.set_open({"limit": None, "done": [], "now": now})
        conversation.release()
    events, agent = await resumed(tmp_path, "notes", lambda asked: Ran("marked 0") if asked.in_doubt else True)
    asked = [(each.tool_name, each.in_doubt) for each in events if isinstance(each, ApprovalRequest)]
    assert asked == [("effects_mark", True), ("effects_mark", False)]
    assert (tmp_path / "marks").read_text().split() == ["0", "1"]
    assert agent.messages[2].parts[0].content == "marked 0"  # type: ignore[union-attr]


async def test_a_conversation_taken_up_again_says_that_names_are_gone(tmp_path: Path, watch: Any) -> None:
    with Conversations.open(tmp_path / "journal.db") as conversations:
        for script in ([Reply(code="x = 1"), "kept"], [Reply(code="2"), Reply(code="3"), "gone"]):
            conversation = conversations.newest(tmp_path) or conversations.create(tmp_path)
            model = ScriptedAgentModel(script)
            async with Agent(model, working_dir=tmp_path, conversation=conversation) as agent:
                assert [event async for event in agent.resume()] == []
                await watch(agent.stream("go"))
            conversation.release()
    assert watch.told(model, 1).startswith("2\n\nThe interpreter was restarted before this action")
    assert watch.told(model, 2) == "3"


async def test_killed_in_a_subagent_it_goes_on_with_its_own_history(tmp_path: Path) -> None:
    await killed(tmp_path, "nested", stop_at="2")
    assert paid(tmp_path) == ["1"]
    events, _ = await resumed(tmp_path, "nested")
    asked = [event for event in events if isinstance(event, ApprovalRequest)]
    assert [(each.agent_id[:4], dict(each.tool_args)) for each in asked] == [("sub-", {"euros": 2})]
    assert paid(tmp_path) == ["1", "2"]
    assert [event.content for event in events if isinstance(event, Response)] == ["All paid.", "Delegated."]


if __name__ == "__main__":
    asyncio.run(until_killed(Path(sys.argv[1]), *sys.argv[2:]))
