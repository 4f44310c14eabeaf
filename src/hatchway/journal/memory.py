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
    """Keeps every run that has not ended, and the last ended ones."""

    def __init__(self) -> None:
        self._open: dict[str, RunRecord] = {}
        self._ended: OrderedDict[str, RunRecord] = OrderedDict()

    def open(self, run_id: str) -> RunRecord:
        """A new run."""
        record = self._open[run_id] = RunRecord(run_id=run_id)
        return record

    def find(self, run_id: str) -> RunRecord:
        """The run of this id.

        Raises:
            UnknownRun: There is none, or it ended so long ago that it was dropped.
        """
        record = self._open.get(run_id) or self._ended.get(run_id)
        if record is None:
            raise UnknownRun(run_id)
        return record

    def ended(
        self, record: RunRecord, *, result: ExecutionResult | None = None, error: Exception | None = None
    ) -> None:
        """Note how a run ended, and drop the oldest ended one past the bound."""
        record.state = "failed" if error is not None else "done"
        record.result, record.error = result, error
        record.live, record.checkpoint, record.pending = None, None, ()
        self._open.pop(record.run_id, None)
        self._ended[record.run_id] = record
        if len(self._ended) > _KEPT_ENDED_RUNS:
            self._ended.popitem(last=False)

    def paused(self) -> tuple[RunRecord, ...]:
        """Every run that waits for a person."""
        return tuple(record for record in self._open.values() if record.state == "paused")
