"""A turn that nobody can decide about now pauses; another process, or the same one, goes on with it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hatchway.agent import Agent, AgentEvent, ApprovalRequest, Response
from hatchway.agent.conversations import Conversations
from hatchway.core.decisions import Allow, Later
from hatchway.core.errors import ApprovalRequired
from hatchway.testing import Call, Reply, ScriptedAgentModel
from hatchway.tools.functions import tool

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("agent_jail"),
]

PAIR = "import asyncio\nprint(await asyncio.gather(pay(1), pay(2)))"


def script(messages: Any) -> Any:
    """Pays; asked to delegate, it gives that to two others."""
    told = [part.content for message in messages for part in message.parts if part.part_kind == "tool-return"]
    if messages[0].parts[0].content == "delegate":
        tasks = [Call("subagent_task", {"prompt": name}) for name in ("first", "second")]
        return tasks if not told else "Delegated."
    return Reply(code=PAIR) if not told else f"Paid: {str(told[-1])[:60]}"


def agent_for(workspace: Path, conversation: Any) -> Agent:
    """The same agent in every process."""

    @tool
    async def pay(euros: int) -> int:
        """Pay."""
        await asyncio.sleep(0.2)
        with (workspace / "paid").open("a") as file:
            file.write(f"{euros}\n")
        return euros

    return Agent(ScriptedAgentModel(script), working_dir=workspace, tools=[pay], conversation=conversation)


def paid(workspace: Path) -> list[str]:
    file = workspace / "paid"
    return sorted(file.read_text().split()) if file.exists() else []


async def follow(events: Any, later: Any) -> list[AgentEvent]:
    """All events; what `later` names is left for later, the rest is approved."""
    found: list[AgentEvent] = []
    async for event in events:
        found.append(event)
        if isinstance(event, ApprovalRequest):
            event.approve(Later() if later(event) else Allow())
    return found


def nothing(request: ApprovalRequest) -> bool:
    return False


def second(request: ApprovalRequest) -> bool:
    return request.tool_args.get("euros") == 2


def action(request: ApprovalRequest) -> bool:
    return request.kind == "code"


@pytest.mark.parametrize("later", [second, action])
async def test_another_process_goes_on_and_each_effect_is_done_once(tmp_path: Path, place: str, later: Any) -> None:
    with Conversations.open(place) as kept:
        async with agent_for(tmp_path, kept.create(tmp_path)) as agent:
            with pytest.raises(ApprovalRequired) as paused:
                await follow(agent.stream("go"), later)
        assert [call.function_name for call in paused.value.pending] == ["pay" if later is second else "execute_code"]
        assert paid(tmp_path) == (["1"] if later is second else [])
        assert [row.state for row in kept.journal.runs()] == (["paused"] if later is second else [])
    with Conversations.open(place) as kept:
        [row] = kept.list(tmp_path)
        assert (row.state, row.turns) == ("open", 1)
        conversation = kept.pick(1)
        async with agent_for(tmp_path, conversation) as agent:
            events = await follow(agent.resume(), nothing)
            assert await follow(agent.resume(), nothing) == []
        asked = [event.tool_args for event in events if isinstance(event, ApprovalRequest)]
        assert asked == ([{"euros": 2}] if later is second else [{"code": PAIR}, {"euros": 1}, {"euros": 2}])
    assert [event.content for event in events if isinstance(event, Response)][-1].startswith("Paid: [1, 2]")
    assert paid(tmp_path) == ["1", "2"]


async def test_the_same_process_goes_on_or_asks_something_else(tmp_path: Path) -> None:
    with Conversations.open(tmp_path / "journal.db") as kept:
        async with agent_for(tmp_path, kept.create(tmp_path)) as agent:
            with pytest.raises(ApprovalRequired):
                await follow(agent.stream("go"), second)
            with pytest.raises(ApprovalRequired):
                await follow(agent.resume(), second)
            assert paid(tmp_path) == ["1"]
            events = await follow(agent.resume(), nothing)
            assert events[-1].content.startswith("Paid: [1, 2]")  # pyright: ignore
            assert paid(tmp_path) == ["1", "2"]
        async with agent_for(tmp_path, kept.create(tmp_path)) as agent:
            with pytest.raises(ApprovalRequired):
                await follow(agent.stream("go"), second)
            events = await follow(agent.stream("never mind"), nothing)
            assert events[-1].content.startswith("Paid: interrupted")  # pyright: ignore
            assert await follow(agent.resume(), nothing) == []
    assert paid(tmp_path) == ["1", "1", "2"]


async def test_a_no_after_the_pause_stops_the_action_and_is_told(tmp_path: Path) -> None:
    def no(request: ApprovalRequest) -> None:
        request.approve(False, "too dear") if second(request) else request.approve()

    with Conversations.open(tmp_path / "journal.db") as kept:
        conversation = kept.create(tmp_path)
        async with agent_for(tmp_path, conversation) as agent:
            with pytest.raises(ApprovalRequired):
                await follow(agent.stream("go"), second)
        async with agent_for(tmp_path, conversation) as agent:
            events: list[AgentEvent] = []
            async for event in agent.resume():
                events.append(event)
                if isinstance(event, ApprovalRequest):
                    no(event)
        assert events[-1].content.startswith("Paid: The user rejected pay: too dear")  # pyright: ignore
        assert [row.state for row in kept.journal.runs()] == ["failed"]
    assert paid(tmp_path) == ["1"]


async def test_a_subagent_that_waits_does_not_stop_the_other(tmp_path: Path, place: str) -> None:
    with Conversations.open(place) as kept:
        conversation = kept.create(tmp_path)
        first: list[str] = []

        def later(request: ApprovalRequest) -> bool:
            if not second(request):
                return False
            first.append(request.agent_id)
            return request.agent_id == first[0]

        async with agent_for(tmp_path, conversation) as agent:
            with pytest.raises(ApprovalRequired):
                await follow(agent.stream("delegate"), later)
        assert paid(tmp_path) == ["1", "1", "2"]
        async with agent_for(tmp_path, conversation) as agent:
            events = await follow(agent.resume(), nothing)
        assert {event.agent_id for event in events if isinstance(event, ApprovalRequest)} == {first[0]}
        assert events[-1].content == "Delegated."  # pyright: ignore
    assert paid(tmp_path) == ["1", "1", "2", "2"]


async def test_without_a_conversation_the_turn_is_over(tmp_path: Path) -> None:
    async with agent_for(tmp_path, None) as agent:
        with pytest.raises(ApprovalRequired):
            await follow(agent.stream("go"), second)
        events = await follow(agent.stream("again"), nothing)
        assert events[-1].content.startswith("Paid: not run: nobody decided")  # pyright: ignore


async def test_a_request_nobody_waits_for_any_more_says_so(tmp_path: Path) -> None:
    requests: list[ApprovalRequest] = []
    async with agent_for(tmp_path, None) as agent:
        async for event in agent.stream("go"):
            if isinstance(event, ApprovalRequest):
                requests.append(event)
                if event.kind == "code":
                    event.approve()
                elif len(requests) == 3:
                    assert requests[1].is_open
                    event.approve(False, "no")
    assert [request.is_open for request in requests] == [False, False, False]
    await requests[1].closed()
    assert paid(tmp_path) == []
