"""Runs that outlive their mode: decided in parts, edited, expired, in doubt, raced for, redacted, gone another way."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from hatchway import (
    Allow,
    ApprovalRequired,
    CallContext,
    CheckpointRefused,
    CodeMode,
    CodeRuntimeError,
    Deny,
    Edit,
    InDoubt,
    NotRun,
    Ran,
    Rule,
    tool,
)
from hatchway.core.errors import InvalidSetting, ReplayDiverged, RunTaken, SandboxCrashed, UnknownRun, ValueNotPortable
from hatchway.core.events import AgentEvent, CallStarted, CodeExecutionOutputChunk, RunResumed, ToolOutput
from hatchway.journal.redaction import Redact
from hatchway.journal.sqlite import SqliteDatabase
from hatchway.journal.store import Journal
from hatchway.sandboxes.monty import MontySandbox
from hatchway.sandboxes.process.inside import tree

pytestmark = pytest.mark.anyio
PAY = "print('before')\nr = pay(3)\nprint('after')\n[r, pay(r)]"
GATHER = """
import asyncio
async def one(n):
    try:
        return await send(n)
    except RuntimeError as e:
        return "denied" if "not this one" in str(e) else str(e)
await asyncio.gather(*[one(n) for n in range(3)])
"""


@pytest.fixture(params=["process", "monty"])
def sandbox(request: pytest.FixtureRequest) -> str:
    """Full CPython, repeated; and Monty, dumped."""
    return request.param


class World:
    """Tools whose effects are counted, and modes that have them."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.paid: list[int] = []
        self.keys: list[str] = []
        self.events: list[AgentEvent] = []
        self.dies = False
        world = self

        @tool(approval="ask")
        def pay(amount: int) -> int:
            """Pay."""
            world.paid.append(amount)
            return amount + 1

        @tool(approval="ask")
        async def send(n: int) -> int:
            """Send."""
            world.paid.append(n)
            return n * 10

        @tool
        async def once(n: int) -> int:
            """Not to be repeated."""
            world.paid.append(n)
            if world.dies:
                await asyncio.sleep(60)
            return n + 1

        @tool(idempotent=True)
        async def often(n: int, context: CallContext) -> int:
            """May be repeated."""
            world.keys.append(context.idempotency_key)
            if world.dies:
                await asyncio.sleep(60)
            return n + 1

        self.tools = [pay, send, once, often]

    def mode(self, sandbox: str, **settings: Any) -> CodeMode:
        return CodeMode(
            sandbox, **{"tools": self.tools, "journal": self.place, "on_event": self.events.append} | settings
        )

    async def paused(self, sandbox: str, code: str, **settings: Any) -> ApprovalRequired:
        async with self.mode(sandbox, **settings) as mode:
            with pytest.raises(ApprovalRequired) as paused:
                await mode.run(code)
        return paused.value

    async def interrupted(self, sandbox: str, code: str) -> str:
        """A run that was given up while a tool ran: nobody knows whether that had happened."""
        self.dies = True
        async with self.mode(sandbox) as mode:
            running = asyncio.create_task(mode.run(code))
            while not self.paid and not self.keys:
                await asyncio.sleep(0.005)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        self.dies = False
        with Journal(self.place) as journal:
            return journal.runs()[0].run_id


def kill_spawners() -> None:
    """Kill what forks and supervises the code, as a stranger on the machine could."""
    spawners = [
        pid for pid in tree.children(os.getpid()) if "process/inside" in Path(f"/proc/{pid}/cmdline").read_text()
    ]
    for pid in spawners:
        below = tree.descendants(pid)
        os.kill(pid, signal.SIGKILL)
        while any((seen := tree.stat(each)) is not None and not seen.is_zombie for each in below):
            time.sleep(0.001)


@pytest.fixture
def world(place: str) -> World:
    """On each database."""
    return World(place)


async def test_a_pause_outlives_the_mode(world: World, sandbox: str) -> None:
    paused = await world.paused(sandbox, PAY)
    [call] = paused.pending
    world.events.clear()
    async with world.mode(sandbox) as mode:
        with pytest.raises(ApprovalRequired) as second:
            await mode.resume(paused.run_id, {call.call_id: Allow()})
        [other] = second.value.pending
        assert other.kwargs == {"amount": 4}
        result = await mode.resume(paused.run_id, {other.call_id: True})
    assert (result.output, result.stdout) == ([4, 5], "before\nafter\n")
    assert world.paid == [3, 4]
    told = [e.text for e in world.events if isinstance(e, CodeExecutionOutputChunk)]
    assert "".join(told) == "after\n"  # what was told before is not told again
    assert any(isinstance(e, RunResumed) for e in world.events)
    async with world.mode(sandbox) as mode:
        assert await mode.resume(paused.run_id) == result
    assert world.paid == [3, 4]


async def test_decisions_come_in_parts_and_from_elsewhere(world: World, sandbox: str) -> None:
    paused = await world.paused(sandbox, GATHER)
    ids = [call.call_id for call in paused.pending]
    assert len(ids) == 3
    async with world.mode(sandbox) as mode:
        with pytest.raises(ApprovalRequired) as still:
            await mode.resume(paused.run_id, {ids[1]: Edit({"n": 7})})
    assert [call.call_id for call in still.value.pending] == [ids[0], ids[2]]
    with Journal(world.place) as journal:
        journal.decide(paused.run_id, {ids[0]: Allow(), ids[2]: Deny("not this one")})
    async with world.mode(sandbox) as mode:
        assert (await mode.resume(paused.run_id)).output == [0, 70, "denied"]
    assert sorted(world.paid) == [0, 7]


async def test_a_run_that_failed_fails_the_same_again(world: World, sandbox: str) -> None:
    paused = await world.paused(sandbox, "print('so far')\npay(1)\n1 / 0")
    async with world.mode(sandbox) as mode:
        for _ in range(2):
            with pytest.raises(CodeRuntimeError, match="ZeroDivisionError") as failed:
                await mode.resume(paused.run_id, {} if world.paid else {paused.pending[0].call_id: Allow()})
            assert failed.value.stdout == "so far\n"
    assert world.paid == [1]


async def test_a_request_expires(world: World) -> None:
    paused = await world.paused(
        "process", "try:\n    r = pay(1)\nexcept RuntimeError as e:\n    r = str(e)\nr", approval_seconds=0.01
    )
    await asyncio.sleep(0.05)
    async with world.mode("process") as mode:
        result = await mode.resume(paused.run_id, {paused.pending[0].call_id: Allow()})
    assert result.output == "nobody decided in time: the request expired"
    assert world.paid == []


async def test_allowed_for_the_run(world: World) -> None:
    paused = await world.paused("process", "[pay(n) for n in (1, 2, 10)]")
    async with world.mode("process") as mode:
        with pytest.raises(ApprovalRequired) as still:
            await mode.resume(paused.run_id, {paused.pending[0].call_id: Allow("run", args={"amount": "?"})})
    assert [call.kwargs for call in still.value.pending] == [{"amount": 10}]
    async with world.mode("process") as mode:  # also after its process is gone
        assert (await mode.resume(paused.run_id, {still.value.pending[0].call_id: Allow()})).output == [2, 3, 11]
        with pytest.raises(ApprovalRequired):
            await mode.run("pay(1)")
    assert world.paid == [1, 2, 10]


async def test_allowed_for_good(world: World) -> None:
    paused = await world.paused("process", "pay(1)")
    async with world.mode("process") as mode:
        await mode.resume(paused.run_id, {paused.pending[0].call_id: Allow("always", tool="pa*")})
        assert (await mode.run("pay(2)")).output == 3
    async with world.mode("process") as mode:
        assert (await mode.run("pay(3)")).output == 4


async def test_a_call_in_doubt_waits_for_somebody_who_knows(world: World, sandbox: str) -> None:
    run_id = await world.interrupted(sandbox, "r = await once(1)\n[r, await once(r)]")
    async with world.mode(sandbox) as mode:
        with pytest.raises(InDoubt) as doubt:
            await mode.resume(run_id)
        [call] = doubt.value.calls
        assert (call.function_name, world.paid) == ("once", [1])
        with pytest.raises(InvalidSetting, match=r"does not fit\nsay Ran\(value\) or NotRun\(\)$"):
            await mode.resume(run_id, {call.call_id: Allow()})
        with pytest.raises(InvalidSetting, match=f"^zzz: no such pending call; pending are {call.call_id}\n") as told:
            await mode.resume(run_id, {"zzz": Allow()})
        assert told.value.hint == f"decide about one of these; `hatchway show {run_id[:8]}` tells what they are"
        with Journal(world.place) as journal:
            assert journal.run(run_id).state == "in_doubt"
        result = await mode.resume(run_id, {call.call_id: Ran(41)})
    assert result.output == [41, 42]
    assert world.paid == [1, 41]


async def test_a_call_that_did_not_run_runs_now(world: World, sandbox: str) -> None:
    run_id = await world.interrupted(sandbox, "await once(5)")
    async with world.mode(sandbox) as mode:
        with pytest.raises(InDoubt) as doubt:
            await mode.resume(run_id)
        result = await mode.resume(run_id, {doubt.value.calls[0].call_id: NotRun()})
    assert (result.output, world.paid) == (6, [5, 5])


async def test_an_idempotent_call_is_made_again_with_its_key(world: World, sandbox: str) -> None:
    run_id = await world.interrupted(sandbox, "await often(5)")
    async with world.mode(sandbox) as mode:
        assert (await mode.resume(run_id)).output == 6
    assert len(world.keys) == 2
    assert len(set(world.keys)) == 1


async def test_resumed_the_moment_its_sandbox_died_nothing_is_lost(world: World) -> None:
    """What the run had to say last was on its way to the journal when it was taken up again."""
    done: list[int] = []

    @tool
    def deed(n: int) -> int:
        """Do it."""
        done.append(n)
        if n % 2:
            kill_spawners()
        return n

    async with world.mode("process", tools=[deed]) as mode:
        for n in range(1, 20, 2):
            with pytest.raises(SandboxCrashed):
                await mode.run(f"deed({n}), deed({n + 1})")
            assert (await mode.resume(mode.journal.runs(limit=1)[0].run_id)).output == (n, n + 1)
    assert done == list(range(1, 21))


async def test_of_two_who_resume_one_wins(world: World) -> None:
    paused = await world.paused("process", "pay(1)")
    decisions = {paused.pending[0].call_id: Allow()}
    async with world.mode("process") as one, world.mode("process") as two:
        both = await asyncio.gather(
            one.resume(paused.run_id, decisions), two.resume(paused.run_id, decisions), return_exceptions=True
        )
        assert world.paid == [1]
        lost = [outcome for outcome in both if isinstance(outcome, BaseException)]
        assert all(isinstance(e, RunTaken) for e in lost), lost
        assert (await two.resume(paused.run_id)).output == 2
    assert world.paid == [1]


async def test_a_mode_that_was_overtaken_does_not_go_on_with_its_own(world: World) -> None:
    """A run paused here was resumed elsewhere: what still stands here is of the past."""
    async with world.mode("process") as first:
        with pytest.raises(ApprovalRequired) as paused:
            await first.run("[pay(1), pay(2)]")
        async with world.mode("process") as second:
            with pytest.raises(ApprovalRequired) as next_one:
                await second.resume(paused.value.run_id, {paused.value.pending[0].call_id: Allow()})
        call_id = next_one.value.pending[0].call_id
        assert (await first.resume(paused.value.run_id, {call_id: Allow()})).output == [2, 3]
    assert world.paid == [1, 2]


async def test_code_that_goes_another_way_is_stopped_before_it_calls(world: World) -> None:
    paused = await world.paused("process", "import os\nx = 1\nawait often(os.getpid())\npay(1)")
    calls = len(world.keys)
    async with world.mode("process") as mode:
        with pytest.raises(ReplayDiverged) as diverged:
            await mode.resume(paused.run_id, {paused.pending[0].call_id: Allow()})
    assert diverged.value.expected.startswith("often(")
    assert diverged.value.actual.startswith("often(")
    assert diverged.value.actual != diverged.value.expected
    assert diverged.value.line == 3
    assert (world.paid, len(world.keys)) == ([], calls)


async def test_what_cannot_be_gone_on_with_says_why(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused = await world.paused("process", "pay(1)")
    call_id = paused.pending[0].call_id

    @tool(approval="ask")
    def pay(amount: int, currency: str = "EUR") -> int:
        """Pay."""
        raise AssertionError

    async with world.mode("process", tools=[pay]) as mode:
        with pytest.raises(CheckpointRefused, match="the schema of the tool pay changed since call"):
            await mode.resume(paused.run_id, {call_id: Allow()})
    async with world.mode("process", tools=[]) as mode:
        with pytest.raises(CheckpointRefused, match=r"the tool pay, which call .* waits for, is not offered here"):
            await mode.resume(paused.run_id, {call_id: Allow()})
    async with world.mode("monty") as mode:
        with pytest.raises(CheckpointRefused, match="the run was started in the sandbox process, here it is monty"):
            await mode.resume(paused.run_id, {call_id: Allow()})
        with pytest.raises(UnknownRun):
            await mode.resume("nothing")
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "another"))
    async with world.mode("process") as mode:
        with pytest.raises(CheckpointRefused, match="the run was started with another key"):
            await mode.resume(paused.run_id, {call_id: Allow()})
    assert world.paid == []
    with Journal(world.place) as journal:  # it was not even taken up
        assert (journal.run(paused.run_id).state, journal.run(paused.run_id).epoch) == ("paused", 1)


async def test_a_run_that_could_not_be_brought_back_still_waits(world: World) -> None:
    paused = await world.paused("process", "import os\nawait often(os.getpid())\npay(1)")
    async with world.mode("process") as mode:
        with pytest.raises(ReplayDiverged):
            await mode.resume(paused.run_id, {paused.pending[0].call_id: Allow()})
        assert mode.journal.run(paused.run_id).state == "paused"
    assert world.paid == []


async def test_a_checkpoint_that_was_altered_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "key"))
    world = World(str(tmp_path / "journal.db"))
    paused = await world.paused("monty", PAY)
    db = SqliteDatabase(world.place)
    sealed = bytes(db.query("SELECT sealed FROM checkpoints")[0][0])
    db.execute("UPDATE checkpoints SET sealed = ?", (sealed[:-1] + bytes([sealed[-1] ^ 1]),))
    db.close()
    async with world.mode("monty") as mode:
        with pytest.raises(CheckpointRefused, match="its signature does not match") as refused:
            await mode.resume(paused.run_id, {paused.pending[0].call_id: Allow()})
    assert refused.value.hint == f"`hatchway show {paused.run_id[:8]}` tells which calls ran; ask anew for the rest"
    assert world.paid == []


async def test_a_checkpoint_of_another_version_is_refused_by_name(tmp_path: Path) -> None:
    world = World(str(tmp_path / "journal.db"))
    paused = await world.paused("monty", PAY)
    here = MontySandbox().facts["pydantic-monty"]
    db = SqliteDatabase(world.place)
    head = str(db.query("SELECT head FROM runs")[0][0])
    db.execute("UPDATE runs SET head = ?", (head.replace(f'"{here}"', '"0.0.1"'),))
    db.close()
    async with world.mode("monty") as mode:
        with pytest.raises(CheckpointRefused) as refused:
            await mode.resume(paused.run_id, {paused.pending[0].call_id: Allow()})
    assert refused.value.reason == f"it was made with pydantic-monty 0.0.1, here it is {here}"
    assert refused.value.hint == "go on with it where pydantic-monty is 0.0.1"
    assert world.paid == []


async def test_redacted_values_are_stored_nowhere(world: World) -> None:
    rules = [Redact("pay", args=("amount",)), Redact("once", result=True)]
    with Journal(world.place, redact=rules) as journal:
        async with world.mode("process", journal=journal) as mode:
            with pytest.raises(ApprovalRequired) as paused:
                await mode.run("pay(424241 + 1)")
    with Journal(world.place) as journal:
        stored = str([journal.entries(paused.value.run_id), journal.events(paused.value.run_id)])
    assert "424242" not in stored
    assert "[redacted]" in stored
    with Journal(world.place, redact=rules) as journal:  # arguments are told by their digest: it can be resumed
        async with world.mode("process", journal=journal) as mode:
            result = await mode.resume(paused.value.run_id, {paused.value.pending[0].call_id: Allow()})
            assert (result.output, world.paid) == (424243, [424242])
        seen = [e.call.kwargs for e in world.events if isinstance(e, CallStarted)]
        assert seen == [{"amount": "[redacted]"}]


async def test_a_redacted_result_cannot_be_resumed_past(world: World) -> None:
    with Journal(world.place, redact=[Redact("once", result=True)]) as journal:
        async with world.mode("process", journal=journal) as mode:
            with pytest.raises(ApprovalRequired) as paused:
                await mode.run("x = await once(424241)\npay(1)")
            assert [e.content for e in world.events if isinstance(e, ToolOutput)] == ["[redacted]"]
    with Journal(world.place) as journal:
        assert "424242" not in str(journal.entries(paused.value.run_id))
    async with world.mode("process") as mode:
        with pytest.raises(
            CheckpointRefused, match=r"the result of once \(call 1\.1\) was redacted and is stored nowhere"
        ):
            await mode.resume(paused.value.run_id, {paused.value.pending[0].call_id: Allow()})


async def test_sessions_are_had_again(world: World, sandbox: str) -> None:
    async with world.mode(sandbox) as mode:
        async with mode.session() as session:
            await session.run("x = await once(1)\nlog = ['a']")
            with pytest.raises(CodeRuntimeError):
                await session.run("log.append('b')\n1 / 0")
            session_id = session.session_id
            with pytest.raises(ApprovalRequired) as paused:
                await session.run("y = pay(x)")
    async with world.mode(sandbox) as mode:
        with pytest.raises(CheckpointRefused, match="an action of the session has not ended"):
            async with mode.session(session_id=session_id):
                pass
        assert (await mode.resume(paused.value.run_id, {paused.value.pending[0].call_id: Allow()})).output is None
        async with mode.session(session_id=session_id) as session:
            assert (await session.run("[x, y, log]")).output == [2, 3, ["a", "b"]]
    assert world.paid == [1, 2]


async def test_a_session_is_had_by_one_and_only_whole(world: World) -> None:
    async with world.mode("process") as mode:
        async with mode.session() as session:
            await session.run("x = 1")
            with pytest.raises(ValueNotPortable):  # it never began: it has no place among the actions
                await session.run("1", inputs={"f": object()})
            await session.run("x += 1")
            async with world.mode("process") as other:
                with pytest.raises(RunTaken, match=f"^session {session.session_id} is being driven by somebody else\n"):
                    async with other.session(session_id=session.session_id):
                        pass
        async with mode.session(session_id=session.session_id) as again:
            assert (await again.run("x")).output == 2
        with pytest.raises(CheckpointRefused, match="no action of a session nothing is in the journal"):
            async with mode.session(session_id="nothing"):
                pass
        mode.journal.prune(keep=2)
        with pytest.raises(CheckpointRefused, match="are missing from the journal: they were pruned, or not stored"):
            async with mode.session(session_id=session.session_id):
                pass


async def test_rules_still_win(world: World) -> None:
    paused = await world.paused("process", "pay(1)")
    async with world.mode("process", rules=[Rule("deny", "pay", {"amount": "5"})]) as mode:
        with pytest.raises(CodeRuntimeError, match="a rule denies pay"):
            await mode.resume(paused.run_id, {paused.pending[0].call_id: Edit({"amount": 5})})
    assert world.paid == []


async def test_a_session_needs_a_journal_to_be_had_again() -> None:
    async with CodeMode("process") as mode:
        with pytest.raises(InvalidSetting, match="only from a journal"):
            async with mode.session(session_id="abc"):
                pass


async def test_following_a_run_that_runs(world: World, sandbox: str) -> None:
    seen: list[str] = []
    async with world.mode(sandbox) as mode:
        with Journal(world.place) as other:
            result = await mode.run("await often(1)\nprint('hi')\nawait often(2)")
            async for event in other.follow(other.runs()[0].run_id):
                seen.append(type(event).__name__)
    assert result.output == 3
    assert [name for name in seen if "Chunk" not in name] == [
        "RunStarted", "CallStarted", "ToolOutput", "CallStarted", "ToolOutput", "CodeExecutionOutput",
    ]  # fmt: skip
