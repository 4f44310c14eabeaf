"""The book of one run: whoever drives the run writes its log here, and nobody else can."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hatchway.core.decisions import Decision
from hatchway.core.errors import HatchwayError, RunTaken
from hatchway.core.results import ExecutionResult
from hatchway.journal.database import Database
from hatchway.journal.entries import EntryKind, RunState, decision_body, ending_text, to_text
from hatchway.journal.jobs import Change, Line
from hatchway.journal.writer import Writer

if TYPE_CHECKING:
    from hatchway.journal.store import Journal

_INSERT = (
    "INSERT INTO log (run_id, n, kind, call_id, at, body) SELECT ?, ?, ?, ?, ?, ?"
    " WHERE EXISTS (SELECT 1 FROM runs WHERE run_id = ? AND epoch = ?{sharing})"
)


class RunBook:
    """Writes the log of a run that was taken. Each entry is refused once somebody else took the run up."""

    def __init__(self, journal: Journal, writer: Writer, run_id: str, *, epoch: int, last_n: int) -> None:
        self.run_id = run_id
        self.epoch = epoch
        """The epoch in which this book writes."""
        self._journal, self._writer = journal, writer
        self._line = Line()
        self._n = last_n
        self._is_back = False

    def enter(self, change: Change) -> None:
        """The run's own row, which all of its log builds on."""
        self._writer.put(change, self._line)

    async def take_up(self) -> None:
        """Begin a new epoch: whoever wrote before can write no more.

        Raises:
            RunTaken: Somebody else did so first.
        """
        before, self.epoch = self.epoch, self.epoch + 1
        now = time.time()

        def begin(db: Database) -> None:
            changed = db.execute(
                "UPDATE runs SET epoch = ?, state = 'running', updated_at = ? WHERE run_id = ? AND epoch = ?",
                (before + 1, now, self.run_id, before),
            )
            if not changed:
                raise RunTaken(self.run_id)
            db.execute("UPDATE checkpoints SET used_at = ? WHERE run_id = ?", (now, self.run_id))

        self._writer.put(begin, self._line)
        await self._writer.written(self._entry("resumed", "", {"epoch": self.epoch}), self._line)

    async def started(self, call_id: str, body: Mapping[str, Any]) -> None:
        """The intent of a call; the tool may run once this returns.

        Raises:
            RunTaken: Somebody else took the run up: the tool must not run.
            JournalError: It cannot be stored: the tool must not run.
        """
        await self._writer.written(self._entry("started", call_id, body), self._line)

    def note(self, kind: EntryKind, call_id: str, body: Mapping[str, Any], *, is_lazy: bool = False) -> None:
        """An entry that nobody waits for; it is stored before whatever comes next."""
        self._writer.put(self._entry(kind, call_id, body), self._line, is_lazy=is_lazy)

    def decided(self, call_id: str, decision: Decision, by: str) -> None:
        """Somebody decided about a call."""
        self.note("decided", call_id, {**decision_body(decision), "by": by})

    async def paused(self, state: RunState, checkpoint: bytes | None) -> None:
        """The run stands; with its checkpoint, where the backend has one."""
        now, epoch = time.time(), self.epoch

        def store(db: Database) -> None:
            db.execute(
                "UPDATE runs SET state = ?, updated_at = ? WHERE run_id = ? AND epoch = ?",
                (state, now, self.run_id, epoch),
            )
            if checkpoint is not None:
                db.execute(
                    "INSERT INTO checkpoints (run_id, epoch, at, sealed) VALUES (?, ?, ?, ?)",
                    (self.run_id, epoch, now, checkpoint),
                )

        await self._writer.written(_both(self._entry("paused", "", {"state": state}), store), self._line)

    async def ended(self, end: ExecutionResult | HatchwayError) -> None:
        """The run is over, and how."""
        state: RunState = "done" if isinstance(end, ExecutionResult) else "failed"
        entry = self._entry("ended", "", {"state": state})
        await self._writer.written(_both(entry, self._ending(state, ending_text(end))), self._line)

    async def interrupted(self) -> None:
        """The host failed or the run was cancelled; it can be resumed."""
        await self._writer.written(self._ending("interrupted", None), self._line)

    async def stored(self) -> None:
        """Until everything is stored."""
        await self._writer.written(lambda db: None, self._line)

    def sync(self) -> None:
        """Wait until everything is stored; blocks."""
        self._writer.write(lambda db: None, self._line)

    def give_back(self) -> None:
        """Let others take the run, once everything is stored: they read on from there. Legal twice."""
        if not self._is_back:
            self._is_back = True
            self._journal.locks.give_back(self.run_id)

    def _ending(self, state: RunState, text: str | None) -> Change:
        now, epoch = time.time(), self.epoch
        ended = now if text is not None else None

        def store(db: Database) -> None:
            db.execute(
                "UPDATE runs SET state = ?, updated_at = ?, ended_at = ?, ending = ? WHERE run_id = ? AND epoch = ?",
                (state, now, ended, text, self.run_id, epoch),
            )
            if text is not None:
                db.execute("DELETE FROM checkpoints WHERE run_id = ?", (self.run_id,))

        return store

    def _entry(self, kind: EntryKind, call_id: str, body: Mapping[str, Any]) -> Change:
        self._n += 1
        n, epoch, now, text = self._n, self.epoch, time.time(), to_text(body)

        def insert(db: Database) -> None:
            sql = _INSERT.format(sharing=db.sharing)
            if not db.execute(sql, (self.run_id, n, kind, call_id or None, now, text, self.run_id, epoch)):
                raise RunTaken(self.run_id)

        return insert


def _both(first: Change, second: Change) -> Change:
    """Two changes that nobody sees apart."""

    def change(db: Database) -> None:
        first(db)
        second(db)

    return change
