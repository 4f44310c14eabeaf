"""The journal: a durable record of runs. Reading is plain and blocking; writing goes through one writer thread."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from os import PathLike, environ, fspath
from pathlib import Path
from typing import Any, Self

from hatchway.core.decisions import Decision
from hatchway.core.errors import HatchwayError, InvalidSetting, RunTaken, UnknownRun
from hatchway.core.events import AgentEvent
from hatchway.core.results import ExecutionResult
from hatchway.core.signing import load_key
from hatchway.journal import schema
from hatchway.journal.book import RunBook
from hatchway.journal.database import Database, file_of, is_postgres
from hatchway.journal.entries import Entry, RunHead, RunRow, RunState, ending_of, from_text, head_of, head_text, to_text
from hatchway.journal.events import EventTeller
from hatchway.journal.follow import followed
from hatchway.journal.history import History
from hatchway.journal.locks import AdvisoryLocks, FileLocks, Locks
from hatchway.journal.postgres import PostgresDatabase
from hatchway.journal.pruning import Pruned, pruned
from hatchway.journal.redaction import Redact, Redaction
from hatchway.journal.sqlite import Durability, SqliteDatabase
from hatchway.journal.writer import Change, Writer

MAX_BYTES = 4 * 1024**3
LOOK_EVERY = 200
"""Runs between two looks at the size."""
_COLUMNS = "run_id, session_id, place, state, epoch, sandbox, tier, started_at, updated_at, ended_at, head, ending"


class Journal:
    """Runs, their calls, decisions, checkpoints and events, in a SQLite file or a PostgreSQL database.

    Args:
        place: A path, `sqlite:///PATH`, or `postgresql://…`; a file is made when it is not there.
        redact: What must not be stored.
        durability: SQLite only: `"normal"` survives the death of the process, `"full"` also a power cut.
        max_bytes: Past this the oldest ended runs are dropped when a new one starts.

    Raises:
        InvalidSetting: No such kind of place, or machines share it and `HATCHWAY_KEY_FILE` is not set.
        JournalError: It cannot be opened, or a newer Hatchway made it.
        MissingExtra: PostgreSQL is asked for and its driver is not installed.
    """

    def __init__(
        self,
        place: str | PathLike[str],
        *,
        redact: Iterable[Redact] = (),
        durability: Durability = "normal",
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.place = fspath(place)
        self.max_bytes = max_bytes
        self._durability: Durability = durability
        self._is_postgres = is_postgres(self.place)
        if self._is_postgres and not environ.get("HATCHWAY_KEY_FILE"):
            raise InvalidSetting(
                "a journal that machines share needs the key they share",
                hint="export HATCHWAY_KEY_FILE=…: a file of mode 0600 that each of them has, never in the database",
            )
        self._reader = self._connected()
        self._reading = threading.RLock()
        schema.bring_up(self._reader)
        self._locks: Locks | None = None
        is_quick = not self._is_postgres and durability == "normal"
        self._writer = Writer(self._connected, self._connected_here if is_quick else None)
        self._rules = tuple(redact)
        self._redaction: Redaction | None = None
        self._is_closed = False
        self._begun = 0

    @property
    def redaction(self) -> Redaction | None:
        """What must not be stored; None when there is no such rule."""
        if self._rules and self._redaction is None:
            self._redaction = Redaction(self._rules, load_key())
        return self._redaction

    def runs(
        self,
        *,
        state: RunState | None = None,
        session_id: str | None = None,
        limit: int = 100,
        before: float | None = None,
    ) -> list[RunRow]:
        """Runs, newest first. A run whose process died reads `interrupted`.

        Args:
            state: Only these.
            session_id: Only those of this session, oldest first.
            limit: At most so many.
            before: Only those that started before this time, in seconds since the epoch: for the next page.
        """
        wanted: list[tuple[str, Any]] = []
        if state is not None:  # a dead process cannot say so: what reads `running` may be interrupted
            asked = ("running", "interrupted") if state in ("running", "interrupted") else (state,)
            wanted.append((f"state IN ({', '.join('?' * len(asked))})", asked))
        if session_id is not None:
            wanted.append(("session_id = ?", (session_id,)))
        if before is not None:
            wanted.append(("started_at < ?", (before,)))
        where = " WHERE " + " AND ".join(clause for clause, _ in wanted) if wanted else ""
        order = "place" if session_id is not None else "started_at DESC"
        parameters = [value for _, values in wanted for value in values]
        rows = self._query(f"SELECT {_COLUMNS} FROM runs{where} ORDER BY {order} LIMIT ?", [*parameters, limit])
        found = [self._row(row) for row in rows]
        return [run for run in found if state is None or run.state == state]

    def run(self, run_id: str) -> RunRow:
        """One run, by its id or by the beginning of it that no other run has.

        Raises:
            UnknownRun: There is none, or several begin so.
        """
        rows = self._query(f"SELECT {_COLUMNS} FROM runs WHERE run_id = ?", (run_id,))
        if not rows and len(run_id) >= 4 and run_id.isalnum():
            rows = self._query(
                f"SELECT {_COLUMNS} FROM runs WHERE run_id >= ? AND run_id < ? LIMIT 2", (run_id, run_id + "\x7f")
            )
        if len(rows) != 1:
            several = "several runs begin so: give more of the id" if rows else "hatchway runs"
            raise UnknownRun(run_id, hint=several)
        return self._row(rows[0])

    def entries(self, run_id: str, *, after: int = 0, limit: int = -1) -> list[Entry]:
        """The log of a run, in order, from the entry after `after` on."""
        most = " LIMIT ?" if limit >= 0 else ""
        rows = self._query(
            f"SELECT n, kind, call_id, at, body FROM log WHERE run_id = ? AND n > ? ORDER BY n{most}",
            (run_id, after, *([limit] if limit >= 0 else [])),
        )
        return [
            Entry(n=n, kind=kind, call_id=call_id or "", at=at, body=from_text(body))
            for n, kind, call_id, at, body in rows
        ]

    def history(self, run_id: str) -> History:
        """What happened in a run: its calls, their states, what is pending and what is in doubt."""
        return History.of(self.entries(run_id))

    def events(self, run_id: str) -> list[AgentEvent]:
        """The events of a run so far, as a listener would have seen them."""
        run = self.run(run_id)
        teller = EventTeller(run)
        return [teller.started(), *(event for entry in self.entries(run.run_id) for event in teller.told(entry))]

    def follow(self, run_id: str) -> AsyncGenerator[AgentEvent, None]:
        """The events of a run from its start on, as they are stored, also by another process; ends with the run."""
        return followed(self, run_id)

    def checkpoint(self, run_id: str, epoch: int) -> bytes | None:
        """The checkpoint of a pause, if there is one that nobody used."""
        asked = "SELECT sealed FROM checkpoints WHERE run_id = ? AND epoch = ? AND used_at IS NULL"
        rows = self._query(asked, (run_id, epoch))
        return bytes(rows[0][0]) if rows else None

    def rules(self, run_id: str | None = None) -> list[Mapping[str, Any]]:
        """Permissions that were given for good, and those given for this run: `effect`, `tool`, `args`, `reason`."""
        rows = self._query("SELECT body FROM rules WHERE run_id IS NULL OR run_id = ? ORDER BY created_at", (run_id,))
        return [from_text(row[0]) for row in rows]

    def decide(self, run_id: str, decisions: Mapping[str, Decision], *, by: str = "person") -> None:
        """Store decisions about pending calls; `CodeMode.resume` goes on with them, in whatever process.

        Raises:
            UnknownRun: No such run.
            ValueError: A call that is not pending.
            RunTaken: Somebody drives the run just now.
        """
        book = self.take(run_id)
        try:
            waiting = [call.call.call_id for call in self.history(run_id).pending]
            if strangers := [call_id for call_id in decisions if call_id not in waiting]:
                raise ValueError(f"{', '.join(strangers)}: no such pending call; pending are {', '.join(waiting)}")
            for call_id, decision in decisions.items():
                book.decided(call_id, decision, by)
            book.sync()
        finally:
            book.give_back()

    def begin(
        self, run_id: str, head: RunHead, *, sandbox: str, tier: str, session_id: str = "", place: int = 0
    ) -> RunBook:
        """Enter a new run and take it.

        Raises:
            JournalError: It cannot be stored, or the journal is full of runs that have not ended.
        """
        if not self.locks.take(run_id):
            raise RunTaken(run_id)
        now, text = time.time(), head_text(head)
        row = (run_id, session_id or None, place, "running", 1, sandbox, tier, now, now, text)

        def enter(db: Database) -> None:
            db.execute(
                "INSERT INTO runs (run_id, session_id, place, state, epoch, sandbox, tier, started_at, updated_at,"
                " head) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )

        self._begun += 1
        if self._begun % LOOK_EVERY == 1:
            threading.Thread(target=self._keep_small, name="hatchway journal size", daemon=True).start()
        book = RunBook(self, self._writer, run_id, epoch=1, last_n=0)
        book.enter(enter)  # the first intent waits for it too: they are stored in order
        return book

    def take(self, run_id: str) -> RunBook:
        """Take a run to drive it: nobody else can until it is given back. Does not change its epoch.

        Raises:
            UnknownRun: No such run.
            RunTaken: Somebody else has it.
        """
        if not self.locks.take(run_id):
            raise RunTaken(run_id)
        try:
            run = self.run(run_id)
            rows = self._query("SELECT MAX(n) FROM log WHERE run_id = ?", (run_id,))
        except BaseException:
            self.locks.give_back(run_id)
            raise
        return RunBook(self, self._writer, run_id, epoch=run.epoch, last_n=rows[0][0] or 0)

    def add_rule(self, rule_id: str, body: Mapping[str, Any], *, run_id: str | None = None) -> None:
        """Store a permission, for good or for one run."""
        values = (rule_id, run_id, time.time(), to_text(dict(body)))

        def enter(db: Database) -> None:
            db.execute("INSERT INTO rules (rule_id, run_id, created_at, body) VALUES (?, ?, ?, ?)", values)

        self._writer.write(enter)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Ask the tables; for what is kept beside the runs."""
        return self._query(sql, parameters)

    def write(self, change: Change) -> None:
        """Make a change of what is kept beside the runs, in a transaction of its own; blocks until it is stored.

        Raises:
            JournalError: It cannot be stored.
        """
        self._writer.write(change)

    async def written(self, change: Change) -> None:
        """As `write`, without holding up the event loop."""
        await self._writer.written(change)

    def prune(
        self,
        *,
        older_than: float | None = None,
        keep: int | None = None,
        max_bytes: int | None = None,
        dry_run: bool = False,
    ) -> Pruned:
        """Drop ended runs: those that ended so many seconds ago, all but the last `keep`, or until the rest fits.

        With `dry_run` it only says what would be dropped.
        """
        bounds: dict[str, Any] = {"older_than": older_than, "keep": keep, "max_bytes": max_bytes, "dry_run": dry_run}
        db = self._connected()  # not the writer's: it may take long, and nobody who writes a call waits for it
        try:
            found = pruned(db, **bounds)
            if found.runs and not dry_run:
                db.shrink()
            return found
        finally:
            db.close()

    def size(self) -> int:
        """Bytes in use."""
        with self._reading:
            return self._reader.size()

    @property
    def locks(self) -> Locks:
        """Who drives which run."""
        if self._locks is None:
            self._locks = AdvisoryLocks(PostgresDatabase(self.place)) if self._is_postgres else FileLocks(self._file)
        return self._locks

    def close(self) -> None:
        """Store what is left, give every run back. Legal twice."""
        if self._is_closed:
            return
        self._is_closed = True
        self._writer.close()
        if self._locks is not None:
            self._locks.close()
        with self._reading:
            self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _keep_small(self) -> None:
        try:
            self.prune(max_bytes=self.max_bytes)
        except Exception:
            pass  # another process prunes, or the journal is being closed: the next run tries again

    @property
    def _file(self) -> str:
        return str(Path(file_of(self.place)).expanduser())

    def _connected(self) -> Database:
        return (
            PostgresDatabase(self.place)
            if self._is_postgres
            else SqliteDatabase(self._file, durability=self._durability)
        )

    def _connected_here(self) -> Database:
        """A connection whose commits the event loop can make itself."""
        return SqliteDatabase(self._file, durability=self._durability, is_patient=False)

    def _query(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        with self._reading:
            return self._reader.query(sql, parameters)

    def _row(self, row: tuple[Any, ...]) -> RunRow:
        run_id, session_id, place, state, epoch, sandbox, tier, started, updated, ended, head, ending = row
        end: ExecutionResult | HatchwayError | None = ending_of(ending) if ending else None
        if state == "running" and self.locks.is_free(run_id):
            state = "interrupted"
        return RunRow(
            run_id=run_id, session_id=session_id or "", place=place, state=state, epoch=epoch, sandbox=sandbox,
            tier=tier, started_at=started, updated_at=updated, ended_at=ended, head=head_of(head), ending=end,
        )  # fmt: skip
