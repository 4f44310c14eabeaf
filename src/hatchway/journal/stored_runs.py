"""Runs as they are stored, read: their rows, their logs, what happened in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from hatchway.core.errors import HatchwayError, UnknownRun
from hatchway.core.events import AgentEvent
from hatchway.core.results import ExecutionResult
from hatchway.journal.entries import Entry, RunRow, RunState, ending_of, from_text, head_of
from hatchway.journal.events import EventTeller
from hatchway.journal.follow import followed
from hatchway.journal.history import History
from hatchway.journal.locks import Locks

_COLUMNS = "run_id, session_id, place, state, epoch, sandbox, tier, started_at, updated_at, ended_at, head, ending"


class StoredRuns(ABC):
    """The reading half of a journal."""

    @property
    @abstractmethod
    def locks(self) -> Locks:
        """Who drives which run."""

    @abstractmethod
    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Ask the tables."""

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
        rows = self.query(f"SELECT {_COLUMNS} FROM runs{where} ORDER BY {order} LIMIT ?", [*parameters, limit])
        found = [self._row(row) for row in rows]
        return [run for run in found if state is None or run.state == state]

    def run(self, run_id: str) -> RunRow:
        """One run, by its id or by the beginning of it that no other run has.

        Raises:
            UnknownRun: There is none, or several begin so.
        """
        rows = self.query(f"SELECT {_COLUMNS} FROM runs WHERE run_id = ?", (run_id,))
        if not rows and len(run_id) >= 4 and run_id.isalnum():
            rows = self.query(
                f"SELECT {_COLUMNS} FROM runs WHERE run_id >= ? AND run_id < ? LIMIT 2", (run_id, run_id + "\x7f")
            )
        if len(rows) != 1:
            several = "several runs begin so: give more of the id" if rows else "hatchway runs"
            raise UnknownRun(run_id, hint=several)
        return self._row(rows[0])

    def entries(self, run_id: str, *, after: int = 0, limit: int = -1) -> list[Entry]:
        """The log of a run, in order, from the entry after `after` on."""
        most = " LIMIT ?" if limit >= 0 else ""
        rows = self.query(
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
        rows = self.query(asked, (run_id, epoch))
        return bytes(rows[0][0]) if rows else None

    def rules(self, run_id: str | None = None) -> list[Mapping[str, Any]]:
        """Permissions that were given for good, and those given for this run: `effect`, `tool`, `args`, `reason`."""
        rows = self.query("SELECT body FROM rules WHERE run_id IS NULL OR run_id = ? ORDER BY created_at", (run_id,))
        return [from_text(row[0]) for row in rows]

    def _row(self, row: tuple[Any, ...]) -> RunRow:
        run_id, session_id, place, state, epoch, sandbox, tier, started, updated, ended, head, ending = row
        end: ExecutionResult | HatchwayError | None = ending_of(ending) if ending else None
        if state == "running" and self.locks.is_free(run_id):
            state = "interrupted"
        return RunRow(
            run_id=run_id, session_id=session_id or "", place=place, state=state, epoch=epoch, sandbox=sandbox,
            tier=tier, started_at=started, updated_at=updated, ended_at=ended, head=head_of(head), ending=end,
        )  # fmt: skip
