"""The calls of one code action, for telling its model: what is done although it was stopped, and what was denied."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from hatchway.core.calls import CallRecord, FunctionCall
from hatchway.core.events import AgentEvent, CallDecided, CallFailed, CallStarted, ToolOutput
from hatchway.mode.telling import MOST_CALLS, calls_text


class CallsMade:
    """Remembers the last calls of an action, as its events tell of them."""

    def __init__(self) -> None:
        self._begun: dict[str, FunctionCall] = {}
        self._made, self._denied = _Kept(), _Kept()

    def take(self, records: Iterable[CallRecord]) -> None:
        """What a process that is gone knew."""
        for record in records:
            if record.state not in ("started", "pending"):  # of those there will be events
                self._add(record)

    def heard(self, event: AgentEvent) -> None:
        """What happens now."""
        match event:
            case CallDecided(call=call) | CallStarted(call=call):
                self._begun[call.call_id] = call
            case ToolOutput(content=value):
                if (call := self._begun.pop(event.call_id, None)) is not None:
                    self._add(CallRecord(call=call, state="done", value=value))
            case CallFailed(error=error, denied=denied):
                named = FunctionCall(call_id=event.call_id, function_name=event.tool_name)  # denied before it was asked
                call = self._begun.pop(event.call_id, named)
                self._add(CallRecord(call=call, state="denied" if denied else "failed", error=error))
            case _:
                pass

    def done_note(self) -> str:
        """What an action had made that was stopped; empty where that is nothing."""
        return f"Calls it had made, which are not undone:\n{self._made.text()}" if self._made.last else ""

    def denied_note(self) -> str:
        """What was denied to an action that went on to its end: its code may have kept that to itself."""
        return f"Calls it made that were denied, and not run:\n{self._denied.text()}" if self._denied.last else ""

    def _add(self, record: CallRecord) -> None:
        (self._denied if record.state == "denied" else self._made).add(record)


class _Kept:
    """The last records, and how many there were before."""

    def __init__(self) -> None:
        self.last: deque[CallRecord] = deque(maxlen=MOST_CALLS)
        self._number = 0

    def add(self, record: CallRecord) -> None:
        self.last.append(record)
        self._number += 1

    def text(self) -> str:
        return calls_text(list(self.last), self._number - len(self.last))
