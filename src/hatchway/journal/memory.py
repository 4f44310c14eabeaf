"""The journal in memory: runs of this process, known by their id until the mode ends."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Literal

from hatchway.core.calls import FunctionCall
from hatchway.core.errors import UnknownRun
from hatchway.core.results import ExecutionResult

_KEPT_ENDED_RUNS = 256  # ended runs are kept for `resume`, but not for ever: results may be large


@dataclass(slots=True, kw_only=True)
class RunRecord:
    """One run as the journal knows it."""

    run_id: str
    state: Literal["running", "paused", "done", "failed"] = "running"
    pending: tuple[FunctionCall, ...] = ()
    """The calls it waits for, while paused."""
    checkpoint: bytes | None = None
    """The paused execution, where the backend can be dumped."""
    result: ExecutionResult | None = None
    error: Exception | None = None
    live: Any = None
    """The run itself, while it can go on in this process."""


class MemoryJournal:
    """Keeps every paused run, and the last ended ones."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, RunRecord] = OrderedDict()

    def open(self, run_id: str) -> RunRecord:
        """A new run."""
        record = self._runs[run_id] = RunRecord(run_id=run_id)
        return record

    def find(self, run_id: str) -> RunRecord:
        """The run of this id.

        Raises:
            UnknownRun: There is none, or it ended so long ago that it was dropped.
        """
        try:
            return self._runs[run_id]
        except KeyError:
            raise UnknownRun(run_id) from None

    def ended(
        self, record: RunRecord, *, result: ExecutionResult | None = None, error: Exception | None = None
    ) -> None:
        """Note how a run ended, and drop the oldest ended ones past the bound."""
        record.state = "failed" if error is not None else "done"
        record.result, record.error = result, error
        record.live, record.checkpoint, record.pending = None, None, ()
        self._runs.move_to_end(record.run_id)
        over = [r.run_id for r in self._runs.values() if r.state in ("done", "failed")][:-_KEPT_ENDED_RUNS]
        for run_id in over:
            del self._runs[run_id]

    def paused(self) -> tuple[RunRecord, ...]:
        """Every run that waits for a person."""
        return tuple(record for record in self._runs.values() if record.state == "paused")
