"""The book of a run's calls: each is written down before its tool runs and after, as it will be needed again."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import Edit
from hatchway.core.errors import ToolDenied, ToolError
from hatchway.core.events import AgentEvent, CallDecided, CallStarted, CodeExecutionOutputChunk, RunPaused, ToolOutput
from hatchway.core.recording import identity
from hatchway.core.sandbox import CodeExecution
from hatchway.core.values import to_wire
from hatchway.journal.book import RunBook
from hatchway.journal.entries import REDACTED, call_body, decision_body
from hatchway.journal.redaction import Redaction
from hatchway.mode.passage import Admitted


class CallBook:
    """Writes the calls of one run into its journal.

    Args:
        book: The run's log.
        seed: The run's secret.
        redaction: What must not be stored or seen.
        made: How many calls the run had made before.
        approval_seconds: How long a person may take to decide.
    """

    def __init__(
        self,
        book: RunBook,
        *,
        seed: bytes,
        redaction: Redaction | None = None,
        made: int = 0,
        approval_seconds: float | None = None,
    ) -> None:
        self.log = book
        self._seed = seed
        self._redaction = redaction
        self._made = made
        self._approval_seconds = approval_seconds
        self._unwritten: dict[str, dict[str, Any]] = {}

    def came(self, call: FunctionCall, execution: CodeExecution) -> None:
        """The code made a call: keep what the first entry about it will say."""
        self._made += 1
        self._unwritten[call.call_id] = {
            **call_body(call),
            "identity": identity(call, self._seed),
            "made": self._made,
            "trail": {**execution.trail(call.call_id), "ran": execution.ran},
        }

    def held(self, admitted: Admitted, digest: str) -> None:
        """The call waits for a person."""
        body = {**self._first(admitted), "digest": digest}
        if self._approval_seconds is not None:
            body["expires_at"] = time.time() + self._approval_seconds
        self.log.note("pending", admitted.call.call_id, body)

    async def intend(self, admitted: Admitted, *, is_edited: bool) -> None:
        """The call is about to run; it may once this returns.

        Raises:
            RunTaken, JournalError: It must not run.
        """
        body = self._first(admitted)
        if is_edited:
            body["edit"] = self._seen(admitted.call.function_name, admitted.call.kwargs)
        await self.log.started(admitted.call.call_id, body)

    def done(self, call: FunctionCall, value: Any, seconds: float) -> None:
        """The tool gave a value, which is about to be given to the code.

        Raises:
            ValueNotPortable: It cannot be, and nothing was written.
        """
        body: dict[str, Any] = {"value": value, "seconds": seconds}
        if self._redaction is not None and self._redaction.hides_result(call.function_name):
            body = {"redacted": self._redaction.digest(value), "seconds": seconds}
        else:
            to_wire(value, root="result")
        self.log.note("done", call.call_id, body)

    def refused(self, call: FunctionCall, error: ToolError, seconds: float) -> None:
        """The call failed or was denied; the code is about to be told."""
        first = self._unwritten.pop(call.call_id, {})
        if first and self._redaction is not None and self._redaction.is_for(call.function_name):
            first |= {"args": [], "kwargs": {}, "is_hidden": True}  # they were not bound: which is which is not known
        body = {**first, "error": str(error), "seconds": seconds}
        self.log.note("denied" if isinstance(error, ToolDenied) else "failed", call.call_id, body)

    def tell(self, event: AgentEvent) -> AgentEvent:
        """Write down what is told of the run, and give it as it may be seen."""
        if type(event) is CodeExecutionOutputChunk:
            self.log.note("output", "", {"stream": event.stream, "text": event.text}, is_lazy=True)
        seen = event if self._redaction is None else self._redacted(event, self._redaction)
        if isinstance(seen, CallDecided):
            self._keep(seen)
        return seen

    def _keep(self, event: CallDecided) -> None:
        call_id = event.call.call_id
        if call_id in self._unwritten:  # nothing is written about this call yet: its first entry says so too
            self._unwritten[call_id]["decided"] = {**decision_body(event.decision), "by": event.by}
        else:
            self.log.decided(call_id, event.decision, event.by)

    def _first(self, admitted: Admitted) -> dict[str, Any]:
        """What the first entry about a call says of it; empty for later ones."""
        call = admitted.call
        body = self._unwritten.pop(call.call_id, None)
        if body is None:
            return {}
        body |= {"args": [], "kwargs": dict(call.kwargs), "idempotent": admitted.tool.idempotent}  # as a person sees it
        if self._redaction is not None and (seen := self._redaction.arguments(call.function_name, call.kwargs)):
            body |= {"kwargs": seen, "is_hidden": True}
        return body

    def _seen(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        hidden = self._redaction.arguments(tool, arguments) if self._redaction is not None else None
        return dict(arguments) if hidden is None else hidden

    def _redacted(self, event: AgentEvent, redaction: Redaction) -> AgentEvent:
        match event:
            case CallStarted(call=call):
                return replace(event, call=self._call_seen(call))
            case CallDecided(call=call, decision=decision):
                if isinstance(decision, Edit):
                    decision = Edit(self._seen(call.function_name, decision.args))
                return replace(event, call=self._call_seen(call), decision=decision)
            case RunPaused(pending=pending):
                return replace(event, pending=tuple(map(self._call_seen, pending)))
            case ToolOutput(tool_name=name) if redaction.hides_result(name):
                return replace(event, content=REDACTED)
            case _:
                return event

    def _call_seen(self, call: FunctionCall) -> FunctionCall:
        return replace(call, kwargs=self._seen(call.function_name, call.kwargs))
