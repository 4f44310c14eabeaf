"""A journal in trouble: held by others, damaged, without room, its server gone. One clear error, and then it works."""

import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hatchway import Allow, ApprovalRequired, CodeMode, Ran, tool
from hatchway.core.errors import HatchwayError, InDoubt, JournalError
from hatchway.core.results import ExecutionResult
from hatchway.journal import sqlite
from hatchway.journal.entries import RunHead
from hatchway.journal.store import Journal
from hatchway.testing.postgres import Postgres

pytestmark = pytest.mark.anyio
HEAD = RunHead(code="step(1)")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "key"))
    return str(tmp_path / "journal.db")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.5)


async def test_held_by_another_program_it_is_told_once_and_the_next_run_works(path: str, impatient: None) -> None:
    ran: list[int] = []
    holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    @tool
    def step(n: int) -> int:
        """Somebody takes the journal while the second call runs."""
        ran.append(n)
        if n == 1 and len(ran) == 2:
            holder.execute("BEGIN EXCLUSIVE")
        return n

    async with CodeMode("process", tools=[step], journal=path) as mode:
        with pytest.raises(JournalError) as told:
            await mode.run("for n in range(5):\n    print(n)\n    step(n)")
        assert told.value.message == f"the journal {path} is held by another program, for more than 0.5 s"
        assert told.value.hint.startswith(f"see who has it (fuser -v {path}) and end that")
        assert ran == [0, 1]
        [stopped] = mode.journal.runs()
        assert stopped.state == "interrupted"
        holder.execute("ROLLBACK")
        assert (await mode.run("step(7)")).output == 7
        with pytest.raises(InDoubt) as doubt:  # its outcome could not be written down
            await mode.resume(stopped.run_id)
        assert (await mode.resume(stopped.run_id, {doubt.value.calls[0].call_id: Ran(1)})).stdout == "0\n1\n2\n3\n4\n"
    assert ran == [0, 1, 7, 2, 3, 4]
    holder.close()


def test_held_for_good_it_cannot_be_opened(path: str, impatient: None) -> None:
    Journal(path).close()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("UPDATE meta SET value = value")
    with pytest.raises(JournalError, match="is held by another program, for more than"):
        Journal(path)
    holder.close()
    Journal(path).close()


NO_ROOM = """
import asyncio, resource, sys
from hatchway import CodeMode, tool
from hatchway.core.errors import JournalError
path = sys.argv[1]
ran = []

@tool
def step(n: int) -> str:
    "The journal may not grow any more after the second."
    ran.append(n)
    if n == 1:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
    return "x" * 100_000

async def main():
    async with CodeMode("monty", tools=[step], journal=path) as mode:
        try:
            await mode.run("for n in range(50):\\n    step(n)")
        except JournalError as e:
            print(e.message, "|", e.hint)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert 2 <= len(ran) < 20, ran
        assert (await mode.run("len(step(0))")).output == 100_000
        print([run.state for run in mode.journal.runs()])

asyncio.run(main())
"""


def test_without_room_nothing_runs_that_is_not_written_down(path: str) -> None:
    if resource.getrlimit(resource.RLIMIT_FSIZE)[1] != resource.RLIM_INFINITY:
        pytest.skip("files may not grow here")
    done = subprocess.run([sys.executable, "-c", NO_ROOM, path], capture_output=True, text=True, timeout=100)
    first, second = done.stdout.splitlines()
    assert first.startswith(
        f"the journal {path} cannot be written: disk I/O error | see that its folder can be written"
    )
    assert second == "['done', 'interrupted']"


@tool(approval="ask")
def pay(amount: int) -> int:
    """Ask before paying."""
    return amount


@tool
def see(n: int) -> str:
    """Show something of some length."""
    return "v" * n


async def made(path: str) -> bytes:
    """A journal with ended and paused runs, as bytes."""
    async with CodeMode("monty", tools=[pay, see], journal=path) as mode:
        for n in range(6):
            try:
                await mode.run(f"see({n * 100})\nsee(5)\n" + ("pay(1)" if n % 2 else "2"))
            except ApprovalRequired:
                pass
    db = sqlite3.connect(path)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return Path(path).read_bytes()


def damaged(whole: bytes) -> Iterator[bytes]:
    """Cut, bits turned over, a page of rubbish, nothing but rubbish."""
    chance = random.Random(11)
    yield from (whole[:cut] for cut in (1, 100, 4096, 9000, chance.randrange(len(whole))))
    for flips in (1, 3, 10, 30, 100) * 4:
        flipped = bytearray(whole)
        for _ in range(flips):
            flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
        yield bytes(flipped)
    for _ in range(5):
        at = chance.randrange(len(whole))
        yield whole[:at] + chance.randbytes(4096) + whole[at + 4096 :]
    yield chance.randbytes(5_000_000)
    yield whole[:100] + chance.randbytes(5_000_000)


async def test_a_damaged_journal_is_told_and_nothing_else_happens(path: str) -> None:
    whole = await made(path)
    errors = 0
    for number, content in enumerate(damaged(whole)):
        place = Path(path).with_name(f"damaged-{number}.db")
        place.write_bytes(content)
        try:
            await used(str(place))
        except HatchwayError:
            errors += 1
        for left in (place, Path(f"{place}-wal"), Path(f"{place}-shm")):
            left.unlink(missing_ok=True)
        shutil.rmtree(f"{place}.locks", ignore_errors=True)
    assert errors > 10


async def used(path: str) -> None:
    """Everything people do with a journal."""
    async with CodeMode("monty", tools=[pay, see], journal=path) as mode:
        for run in mode.journal.runs():
            mode.journal.events(run.run_id)
            pending = mode.journal.history(run.run_id).pending
            if run.state == "paused":
                await mode.resume(run.run_id, {call.call.call_id: Allow() for call in pending})
        mode.journal.prune(keep=2)
        await mode.run("see(3)")


async def test_a_server_that_was_started_anew_is_found_again(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "key"))
    with postgres.database() as url, Journal(url) as journal, Journal(url) as other:
        book = journal.begin("run1", HEAD, sandbox="process", tier="process")
        await book.started("1.1", {"name": "step", "args": [], "kwargs": {}})
        end_sessions(url)
        assert other.run("run1").state == "interrupted"
        journal.locks.take("any")  # whatever is asked of the server next, its locks are asked for anew
        assert other.run("run1").state == "running"
        book.note("done", "1.1", {"value": 1})
        await book.ended(ExecutionResult(output=1))
        book.give_back()
        end_sessions(url)
        await journal.begin("run2", HEAD, sandbox="process", tier="process").ended(ExecutionResult())
        assert [run.state for run in journal.runs()] == ["done", "done"]


def end_sessions(url: str) -> None:
    """As a server that is stopped ends them."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as db:
        db.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_a_journal_whose_folder_cannot_be_written_is_told(path: str) -> None:
    if os.geteuid() == 0:
        path = "/proc/journal.db"
    else:
        Path(path).parent.chmod(0o500)
    with pytest.raises(JournalError, match="cannot be opened") as told:
        Journal(path)
    assert told.value.hint.startswith("see that its folder can be written")
