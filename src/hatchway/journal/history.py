"""The history of a run: its log folded into calls, answers in the order they were given, and what is open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hatchway.core.calls import CallRecord, CallState, FunctionCall
from hatchway.core.decisions import Decision
from hatchway.journal.entries import Entry, call_of, damaged, decision_of


@dataclass(slots=True, kw_only=True)
class JournaledCall:
    """One call as the journal knows it."""

    call: FunctionCall
    """As the code made it; arguments that a rule redacts read `[redacted]`."""
    n: int
    """The entry that first told of it."""
    at: float
    """When that was, in seconds since the epoch."""
    state: CallState
    """`started` without an outcome is in doubt once its process is dead."""
    identity: str = ""
    """A keyed digest of name and arguments, the same when the code makes the call again."""
    digest: str = ""
    """A digest of exactly what was shown and approved."""
    trail: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What running the code again needs to know about its way to this call."""
    edit: Mapping[str, Any] | None = None
    """The arguments it ran with, where a person changed them."""
    idempotent: bool = False
    value: Any = None
    """What the tool gave, when `state` is done."""
    error: str = ""
    """What the code saw, when `state` is failed or denied."""
    seconds: float = 0.0
    made: int = 0
    """The number of the call among those of its run, in the order the host saw them."""
    answers_before: int = 0
    """How many answers the code had been given when the call was first written down."""
    expires_at: float | None = None
    """When a decision comes too late."""
    is_answered: bool = False
    is_hidden: bool = False
    """Arguments were not stored; `identity` tells the call all the same."""
    is_redacted: bool = False
    """The value was not stored: the run cannot be resumed past this call."""
    decision: Decision | None = None
    """The last decision about it."""
    by: str = ""
    """Who decided."""

    def record(self) -> CallRecord:
        """As views and errors tell it."""
        return CallRecord(call=self.call, state=self.state, value=self.value, error=self.error, seconds=self.seconds)


@dataclass(slots=True, kw_only=True)
class History:
    """What happened in one run, so far."""

    calls: dict[str, JournaledCall] = field(default_factory=dict[str, JournaledCall])
    """By id, in the order they were made."""
    answers: list[JournaledCall] = field(default_factory=list[JournaledCall])
    """Calls whose outcome was given to the code, in that order."""
    printed: dict[str, int] = field(default_factory=lambda: {"stdout": 0, "stderr": 0})
    """Characters of each stream that were told already."""
    last_n: int = 0
    epoch: int = 0
    """The epoch of the last entry that says so."""

    @property
    def pending(self) -> tuple[JournaledCall, ...]:
        """Calls that wait for a person."""
        return tuple(call for call in self.calls.values() if call.state == "pending")

    @property
    def in_doubt(self) -> tuple[JournaledCall, ...]:
        """Calls that were started, and nobody knows whether they ended."""
        return tuple(call for call in self.calls.values() if call.state == "started")

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> History:
        """The history a log tells."""
        history = cls()
        for entry in entries:
            history.add(entry)
        return history

    def add(self, entry: Entry) -> None:
        """Take in the next entry.

        Raises:
            JournalError: It is none that was ever written: the journal was damaged.
        """
        try:
            self._add(entry)
        except (KeyError, TypeError, ValueError, AttributeError) as e:
            raise damaged(f"entry {entry.n} ({entry.kind}) of a run", e) from e

    def _add(self, entry: Entry) -> None:
        self.last_n = entry.n
        match entry.kind:
            case "output":
                self.printed[entry.body["stream"]] += len(entry.body["text"])
            case "resumed":
                self.epoch = entry.body["epoch"]
            case "paused" | "ended":
                pass
            case _:
                self._on_call(entry)

    def _on_call(self, entry: Entry) -> None:
        body = entry.body
        call = self.calls.get(entry.call_id) or self._new(entry)
        match entry.kind:
            case "started":
                call.state, call.edit = "started", body.get("edit")
            case "pending":  # also a call that was started and asked to be allowed first
                call.state, call.digest = "pending", body.get("digest", "")
                call.expires_at = body.get("expires_at")
            case "done":
                call.state, call.value, call.seconds = "done", body.get("value"), body.get("seconds", 0.0)
                call.is_redacted = "redacted" in body
                self._answer(call)
            case "failed" | "denied":
                call.state, call.error, call.seconds = entry.kind, body["error"], body.get("seconds", 0.0)
                self._answer(call)
            case "decided":
                call.decision, call.by = decision_of(body), body["by"]
            case _:
                pass

    def _new(self, entry: Entry) -> JournaledCall:
        body = entry.body
        made = JournaledCall(
            call=call_of(entry.call_id, body),
            n=entry.n,
            at=entry.at,
            state="pending",
            identity=body.get("identity", ""),
            digest=body.get("digest", ""),
            trail=body.get("trail") or {},
            idempotent=body.get("idempotent", False),
            made=body.get("made", len(self.calls) + 1),
            answers_before=len(self.answers),
            expires_at=body.get("expires_at"),
            is_hidden=body.get("is_hidden", False),
        )
        if decided := body.get("decided"):
            made.decision, made.by = decision_of(decided), decided["by"]
        self.calls[entry.call_id] = made
        return made

    def _answer(self, call: JournaledCall) -> None:
        if call.is_answered:  # by a value that could not cross after all: the error that came instead counts
            self.answers = [other for other in self.answers if other is not call]
        call.is_answered = True
        self.answers.append(call)
