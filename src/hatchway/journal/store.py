"""The journal: a durable record of runs. Reading is plain and blocking; writing goes through one writer thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, environ, fspath
from pathlib import Path
from typing import Any, Self

from hatchway.core.calls import no_such_call
from hatchway.core.decisions import Decision
from hatchway.core.errors import InvalidSetting, RunTaken
from hatchway.core.signing import load_key
from hatchway.journal import schema
from hatchway.journal.book import RunBook
from hatchway.journal.database import Database, file_of, is_postgres
from hatchway.journal.entries import RunHead, head_text, to_text
from hatchway.journal.jobs import Change
from hatchway.journal.locks import AdvisoryLocks, FileLocks, Locks
from hatchway.journal.postgres import PostgresDatabase
from hatchway.journal.pruning import Pruned, pruned
from hatchway.journal.redaction import Redact, Redaction
from hatchway.journal.sqlite import Durability, SqliteDatabase
from hatchway.journal.stored_runs import StoredRuns
from hatchway.journal.writer import Writer

MAX_BYTES = 4 * 1024**3
LOOK_EVERY = 200
"""Runs between two looks at the size."""


class Journal(StoredRuns):
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

    def decide(self, run_id: str, decisions: Mapping[str, Decision], *, by: str = "person") -> None:
        """Store decisions about pending calls; `CodeMode.resume` goes on with them, in whatever process.

        Raises:
            UnknownRun: No such run.
            InvalidSetting: A call that is not pending.
            RunTaken: Somebody drives the run just now.
        """
        book = self.take(run_id)
        try:
            waiting = [call.call.call_id for call in self.history(run_id).pending]
            if strangers := [call_id for call_id in decisions if call_id not in waiting]:
                raise no_such_call(strangers, waiting, where=f"`hatchway show {run_id[:8]}` tells what they are")
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
            rows = self.query("SELECT MAX(n) FROM log WHERE run_id = ?", (run_id,))
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
        with self._reading:
            return self._reader.query(sql, parameters)

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
