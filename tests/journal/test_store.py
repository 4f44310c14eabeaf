"""The journal on both databases: what is written is read, by whoever, while it is written."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from hatchway.core.calls import FunctionSignature
from hatchway.core.decisions import Allow, Deny, Edit
from hatchway.core.errors import CodeLimitError, InvalidSetting, JournalError, RunTaken, UnknownRun
from hatchway.core.events import (
    CallDecided,
    CallFailed,
    CallStarted,
    CodeExecutionOutput,
    CodeExecutionOutputChunk,
    RunFailed,
    RunPaused,
    RunStarted,
    ToolOutput,
)
from hatchway.core.limits import Limits
from hatchway.core.results import ExecFile, ExecutionResult, Usage
from hatchway.journal import schema
from hatchway.journal.entries import RunHead
from hatchway.journal.sqlite import SqliteDatabase
from hatchway.journal.store import Journal

pytestmark = pytest.mark.anyio
Open = Callable[..., Journal]
HEAD = RunHead(
    code="lookup(1)", inputs={"n": (1, b"\0")}, functions=(FunctionSignature(name="lookup"),), limits=Limits(calls=7)
)
CALL = {"name": "lookup", "args": [1], "kwargs": {}, "identity": "i", "digest": "d"}


@pytest.fixture
def open_journal(place: str) -> Generator[Open]:
    """Opens the journal, once or several times; all are closed at the end."""
    opened: list[Journal] = []

    def open_it(**settings: object) -> Journal:
        opened.append(Journal(place, **settings))  # type: ignore[arg-type]
        return opened[-1]

    yield open_it
    for journal in opened:
        journal.close()


async def test_a_run_is_read_as_it_was_written(open_journal: Open) -> None:
    journal = open_journal()
    book = journal.begin("run1", HEAD, sandbox="process", tier="process")
    await book.started("1.1", CALL)
    book.note("output", "", {"stream": "stdout", "text": "hi\n"})
    book.note("done", "1.1", {"value": {"a": (1, 2)}, "seconds": 0.5})
    result = ExecutionResult(
        output={1, 2}, stdout="hi\n", files=(ExecFile(name="a.bin", content=b"\xff"),), usage=Usage(calls=1)
    )
    await book.ended(result)
    book.give_back()

    reader = open_journal()
    run = reader.run("run1")
    assert (run.state, run.sandbox, run.epoch, run.ending) == ("done", "process", 1, result)
    assert run.head == HEAD
    call = reader.history("run1").calls["1.1"]
    assert (call.state, call.value, call.seconds, call.call.args) == ("done", {"a": (1, 2)}, 0.5, (1,))
    kinds = [type(event) for event in reader.events("run1")]
    assert kinds == [RunStarted, CallStarted, CodeExecutionOutputChunk, ToolOutput, CodeExecutionOutput]


async def test_pending_calls_and_decisions(open_journal: Open) -> None:
    journal = open_journal()
    book = journal.begin("run1", HEAD, sandbox="process", tier="process")
    for call_id in ("1.1", "1.2", "1.3"):
        book.note("pending", call_id, CALL)
    await book.paused("paused", b"\0checkpoint")
    book.give_back()

    other = open_journal()
    assert other.checkpoint("run1", 1) == b"\0checkpoint"
    assert [c.call.call_id for c in other.history("run1").pending] == ["1.1", "1.2", "1.3"]
    with pytest.raises(InvalidSetting, match=r"^9\.9: no such pending call; pending are 1\.1, 1\.2, 1\.3\n") as told:
        other.decide("run1", {"9.9": Allow()})
    assert told.value.hint == "decide about one of these; `hatchway show run1` tells what they are"
    other.decide("run1", {"1.1": Deny("no"), "1.2": Edit({"key": 2})})
    decided = {c.call.call_id: c.decision for c in journal.history("run1").pending}
    assert decided == {"1.1": Deny("no"), "1.2": Edit({"key": 2}), "1.3": None}
    assert [type(e) for e in other.events("run1")] == [RunStarted, RunPaused, CallDecided, CallDecided]


async def test_a_checkpoint_is_used_once(open_journal: Open) -> None:
    journal = open_journal()
    book = journal.begin("run1", HEAD, sandbox="monty", tier="language")
    await book.paused("paused", b"bytes")
    book.give_back()
    book = journal.take("run1")
    await book.take_up()
    assert journal.checkpoint("run1", 1) is None
    assert journal.run("run1").epoch == 2


async def test_of_two_who_take_a_run_one_wins(open_journal: Open) -> None:
    one, two = open_journal(), open_journal()
    book = one.begin("run1", HEAD, sandbox="process", tier="process")
    await book.paused("paused", None)
    with pytest.raises(RunTaken, match=r"^run run1 is being driven by somebody else"):
        two.take("run1")
    with pytest.raises(RunTaken):
        one.take("run1")
    book.give_back()
    again = two.take("run1")
    await again.take_up()
    with pytest.raises(RunTaken):
        one.take("run1")


async def test_an_old_epoch_cannot_write_an_intent(open_journal: Open) -> None:
    """The lock may be lost, as with a connection that broke: the epoch in the same transaction still holds."""
    one, two = open_journal(), open_journal()
    stale = one.begin("run1", HEAD, sandbox="process", tier="process")
    await stale.started("1.1", CALL)
    stale.give_back()
    fresh = two.take("run1")
    await fresh.take_up()
    with pytest.raises(RunTaken):
        await stale.started("1.2", CALL)
    assert list(two.history("run1").calls) == ["1.1"]
    await fresh.started("1.2", CALL)
    assert [e.kind for e in two.entries("run1")] == ["started", "resumed", "started"]


async def test_a_run_whose_process_was_killed_is_interrupted(place: str, open_journal: Open) -> None:
    code = f"""
import asyncio, os, signal
from hatchway.journal.store import Journal
from hatchway.journal.entries import RunHead
async def main():
    book = Journal({place!r}).begin("dead", RunHead(code="x"), sandbox="process", tier="process")
    await book.started("1.1", {CALL!r})
    print("ready", flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=os.environ)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"ready\n"
        journal = open_journal()
        assert journal.run("dead").state == "running"
        with pytest.raises(RunTaken):
            journal.take("dead")
        process.send_signal(signal.SIGKILL)
        process.wait()
    deadline = time.monotonic() + 10
    while journal.run("dead").state == "running" and time.monotonic() < deadline:
        time.sleep(0.02)  # a server takes a moment to see that a client is gone
    assert [r.run_id for r in journal.runs(state="interrupted")] == ["dead"]
    assert journal.runs(state="running") == []
    assert [c.call.call_id for c in journal.history("dead").in_doubt] == ["1.1"]
    journal.take("dead").give_back()


async def test_following_from_a_second_connection(open_journal: Open) -> None:
    journal, other = open_journal(), open_journal()
    book = journal.begin("run1", HEAD, sandbox="process", tier="process")
    await book.started("1.1", CALL)
    seen: list[type] = []

    async def follow() -> None:
        async for event in other.follow("run1"):
            seen.append(type(event))

    following = asyncio.create_task(follow())
    while len(seen) < 2:
        await asyncio.sleep(0.01)
    assert seen == [RunStarted, CallStarted]
    book.note("failed", "1.1", {"error": "ToolError: no", "seconds": 0.1})
    await book.ended(CodeLimitError("too much", limit="calls", stdout="so far"))
    await asyncio.wait_for(following, 10)
    assert seen == [RunStarted, CallStarted, CallFailed, RunFailed]
    ending = other.run("run1").ending
    assert isinstance(ending, CodeLimitError)
    assert (ending.limit, ending.stdout, ending.message) == ("calls", "so far", "too much")


async def test_runs_are_listed_newest_first_and_found_by_a_beginning(open_journal: Open) -> None:
    journal = open_journal()
    for name in ("aaaa1", "aaaa2", "bbbb1"):
        await journal.begin(name, HEAD, sandbox="process", tier="process").ended(ExecutionResult())
    assert [r.run_id for r in journal.runs()] == ["bbbb1", "aaaa2", "aaaa1"]
    assert [r.run_id for r in journal.runs(limit=1)] == ["bbbb1"]
    assert journal.run("bbbb").run_id == "bbbb1"
    with pytest.raises(UnknownRun, match=r"in this journal\nseveral runs begin so: give more of the id$"):
        journal.run("aaaa")
    with pytest.raises(UnknownRun, match=r"^no run 'cccc' in this journal\nhatchway runs$"):
        journal.run("cccc")


async def test_prune_drops_ended_runs_only(open_journal: Open) -> None:
    journal = open_journal()
    for i in range(5):
        book = journal.begin(f"run{i}", HEAD, sandbox="process", tier="process")
        await book.started("1.1", CALL)
        if i:
            await book.ended(ExecutionResult(output="x" * 1000))
            book.give_back()
    assert journal.prune().runs == 0
    dropped = journal.prune(keep=1)
    assert dropped.runs == 3
    assert dropped.bytes > 3000
    assert [r.run_id for r in journal.runs()] == ["run4", "run0"]
    assert journal.prune(older_than=-1).runs == 1
    assert journal.prune(max_bytes=0).runs == 0
    assert [r.run_id for r in journal.runs()] == ["run0"]
    assert journal.entries("run4") == []


async def test_prune_keeps_what_an_open_action_builds_on(open_journal: Open) -> None:
    journal = open_journal()
    for i, (session, is_ended) in enumerate([("s1", True), ("s1", True), ("s1", False), ("s2", True), ("", True)]):
        book = journal.begin(f"run{i}", HEAD, sandbox="process", tier="process", session_id=session, place=i % 3)
        if is_ended:
            await book.ended(ExecutionResult())
        else:
            await book.paused("paused", None)
        book.give_back()
    assert journal.prune(keep=0).runs == 2
    assert sorted(r.run_id for r in journal.runs()) == ["run0", "run1", "run2"]
    await journal.take("run2").ended(ExecutionResult())
    assert journal.prune(keep=0).runs == 3


@pytest.mark.parametrize("small_pages", [0, 16_000])
async def test_prune_gives_the_room_back(tmp_path: Path, small_pages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hatchway.journal.sqlite._SMALL_PAGES", small_pages)
    path = tmp_path / "journal.db"
    with Journal(path) as journal, Journal(path) as other:
        for i in range(40):
            book = other.begin(f"run{i}", HEAD, sandbox="process", tier="process")
            await book.ended(ExecutionResult(output="x" * 50_000))
            book.give_back()
        assert journal.prune(keep=2).runs == 38
        assert [r.run_id for r in other.runs()] == ["run39", "run38"]
    assert path.stat().st_size < 400_000


async def test_a_journal_past_its_size_drops_ended_runs(open_journal: Open) -> None:
    journal = open_journal()
    for i in range(3):
        book = journal.begin(f"run{i}", HEAD, sandbox="process", tier="process")
        await book.ended(ExecutionResult(output="x" * 100_000))
        book.give_back()
    small = open_journal(max_bytes=1)
    book = small.begin("new", HEAD, sandbox="process", tier="process")
    await book.started("1.1", CALL)
    for _ in range(200):
        if len(small.runs()) < 4:
            break
        await asyncio.sleep(0.02)
    left = [run.run_id for run in small.runs()]  # how much a run takes is an estimate
    assert "new" in left
    assert "run0" not in left


async def test_many_write_at_once(open_journal: Open) -> None:
    journals = [open_journal() for _ in range(4)]

    async def one(i: int) -> None:
        book = journals[i % 4].begin(f"run{i}", HEAD, sandbox="process", tier="process")
        for k in range(10):
            await book.started(f"1.{k}", CALL)
            book.note("done", f"1.{k}", {"value": k})
        await book.ended(ExecutionResult(output=i))
        book.give_back()

    await asyncio.gather(*[one(i) for i in range(40)])
    for i in range(40):
        assert [e.n for e in journals[0].entries(f"run{i}")] == list(range(1, 22))
        assert journals[0].run(f"run{i}").ending == ExecutionResult(output=i)


def test_a_journal_of_an_older_version_is_brought_up(tmp_path: Path) -> None:
    path = str(tmp_path / "old.db")
    old = SqliteDatabase(path)
    old.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    old.execute("INSERT INTO meta (name, value) VALUES ('version', '1')")
    for statement in schema.MIGRATIONS[1]:
        old.execute(statement.format(bytes=old.bytes_type))
    old.close()
    with Journal(path) as journal:
        journal.add_rule("r1", {"effect": "allow", "tool": "f"})
        assert journal.rules() == [{"effect": "allow", "tool": "f"}]
    again = SqliteDatabase(path)
    assert schema.version(again) == schema.VERSION
    again.execute("UPDATE meta SET value = '99' WHERE name = 'version'")
    again.close()
    with pytest.raises(JournalError, match=r"^the journal has version 99, this Hatchway knows up to 3\n"):
        Journal(path)


def test_what_is_no_journal_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    junk = tmp_path / "junk.db"
    junk.write_bytes(b"junk" * 5000)
    with pytest.raises(JournalError, match="cannot be opened: file is not a database"):
        Journal(junk)
    with pytest.raises(InvalidSetting, match=r"^a journal is a path"):
        Journal("mysql://host/db")
    monkeypatch.delenv("HATCHWAY_KEY_FILE", raising=False)
    with pytest.raises(InvalidSetting, match=r"^a journal that machines share needs the key they share"):
        Journal("postgresql://host/db")
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "key"))
    with pytest.raises(JournalError, match=r"^the journal's database cannot be reached"):
        Journal(f"postgresql://x@/x?host={tmp_path}")


def test_only_its_user_can_read_the_file(tmp_path: Path) -> None:
    with Journal(tmp_path / "sub" / "journal.db"):
        assert (tmp_path / "sub" / "journal.db").stat().st_mode & 0o777 == 0o600
