"""Events from storage: what a listener would have seen, told by the journal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hatchway.core.decisions import Deny
from hatchway.core.events import (
    AgentEvent,
    CallDecided,
    CallFailed,
    CallStarted,
    CodeExecutionOutput,
    CodeExecutionOutputChunk,
    RunFailed,
    RunPaused,
    RunResumed,
    RunStarted,
    ToolOutput,
)
from hatchway.core.results import ExecutionResult
from hatchway.core.values import as_python
from hatchway.journal.entries import REDACTED, Entry, RunRow
from hatchway.journal.history import History, JournaledCall
from hatchway.journal.names import ArgumentNames


class EventTeller:
    """Turns the entries of a run, one after the other, into events."""

    def __init__(self, run: RunRow) -> None:
        self._run = run
        self._history = History()
        self._names = ArgumentNames(run.head.functions)

    def started(self) -> RunStarted:
        """The beginning."""
        run = self._run
        return RunStarted(run.head.code, run.sandbox, run.tier, run_id=run.run_id, at=run.started_at)

    def told(self, entry: Entry, run: RunRow | None = None) -> list[AgentEvent]:
        """What an entry says; `run` is how the run stands by now."""
        self._run = run or self._run
        self._history.add(entry)
        when: Any = {"run_id": self._run.run_id, "at": entry.at}
        call = self._history.calls.get(entry.call_id)
        if call is not None and (decided := entry.body.get("decided")):
            first = CallDecided(
                self._names.named(call.call), decision=call.decision or Deny(), by=decided["by"], **when
            )
            return [first, *self._told(entry, call, when)]
        return self._told(entry, call, when)

    def _told(self, entry: Entry, call: JournaledCall | None, when: Any) -> list[AgentEvent]:
        match entry.kind:
            case "output":
                return [CodeExecutionOutputChunk(entry.body["text"], stream=entry.body["stream"], **when)]
            case "resumed":
                return [RunResumed(entry.body["epoch"], **when)]
            case "paused":
                return [RunPaused(tuple(self._names.named(c.call) for c in self._history.pending), **when)]
            case "ended":
                return self._ended(when)
            case _ if call is None:
                return []
            case "started":
                edited = None if call.edit is None else replace(call.call, args=(), kwargs=call.edit)
                return [CallStarted(edited or self._names.named(call.call), **when)]
            case "done":
                value = REDACTED if call.is_redacted else call.value
                return [ToolOutput(value, **_about(call), **when)]
            case "failed" | "denied":
                return [CallFailed(call.error, denied=entry.kind == "denied", **_about(call), **when)]
            case "decided":
                named = self._names.named(call.call)
                return [CallDecided(named, decision=call.decision or Deny(), by=entry.body["by"], **when)]
            case "pending":
                return []

    def _ended(self, when: Any) -> list[AgentEvent]:
        match self._run.ending:
            case None:
                return []
            case ExecutionResult() as result:
                text = result.stdout if result.output is None else f"{result.stdout}{as_python(result.output)}"
                return [CodeExecutionOutput(text or None, result.images, result=result, **when)]
            case error:
                return [RunFailed(error, **when)]


def _about(call: Any) -> dict[str, Any]:
    return {"call_id": call.call.call_id, "tool_name": call.call.function_name, "seconds": call.seconds}
