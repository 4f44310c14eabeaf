"""The calls of one action: made, handed out, answered."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import pydantic_monty as pm

from hatchway.core.calls import FunctionCall, Waiting, pending_id
from hatchway.core.errors import CodeRuntimeError, HatchwayError
from hatchway.core.limits import Limits
from hatchway.sandboxes.monty.failures import over


class Ledger:
    """Who was called, and which calls are unanswered, oldest first.

    An async call that is not awaited on the spot starts when the code next stands: it may be meant for a gather, or be
    forgotten. One that is never awaited has mostly not started then, and is told as an error.

    Args:
        limits: Those of the action.
        pending: Unanswered calls of a dumped execution; they are handed out again.
        made: How many calls it had made.
    """

    def __init__(self, limits: Limits, *, pending: Iterable[FunctionCall] = (), made: int = 0) -> None:
        self._limits = limits
        self.pending = {call.call_id: call for call in pending}
        """Unanswered calls that were handed out or are about to be."""
        self.unstarted: dict[str, FunctionCall] = {}
        """Async calls made since the code last stood."""
        self.stops: dict[str, pm.FunctionSnapshot] = {}
        """The stops at which the unstarted calls were made."""
        self.made = made
        """Calls made so far."""
        self._unread = deque(self.pending.values())

    def enter(self, call: FunctionCall) -> HatchwayError | None:
        """Count a call; the error that ends the action when it is one too many, or no honest worker's."""
        if call.call_id in self.pending or call.call_id in self.unstarted:
            return CodeRuntimeError(f"the code broke the sandbox protocol: two calls are numbered {call.call_id}")
        self.made += 1
        if self.made > self._limits.calls:
            return over("calls", f"the code made more than {self._limits.calls} tool calls")
        if len(self.pending) + len(self.unstarted) >= self._limits.pending_calls:
            most = self._limits.pending_calls
            return over("pending_calls", f"more than {most} calls were unanswered at a time (Limits.pending_calls)")
        return None

    def hand_out(self, call: FunctionCall) -> None:
        """The call waits for its answer from now on."""
        self.pending[call.call_id] = call
        self._unread.append(call)

    def postpone(self, call: FunctionCall, stop: pm.FunctionSnapshot) -> None:
        """Keep an async call until the code stands."""
        self.unstarted[call.call_id] = call
        self.stops[call.call_id] = stop

    def start(self) -> None:
        """The code stands: hand out what was kept."""
        if not self.unstarted:
            return
        for call in self.unstarted.values():
            self.hand_out(call)
        self.unstarted.clear()
        self.stops.clear()

    def unread(self) -> FunctionCall | None:
        """The next call to hand out."""
        return self._unread.popleft() if self._unread else None

    @property
    def is_read(self) -> bool:
        """Whether every call was handed out."""
        return not self._unread

    def waiting(self) -> Waiting:
        """Every unanswered call."""
        return Waiting(tuple(self.pending.values()))

    def forget(self) -> None:
        """The action has ended and everybody knows: no answer is taken any more."""
        self.pending.clear()
        self._unread.clear()

    def find(self, call_id: str | None) -> FunctionCall:
        """The pending call of this id, or the only one.

        Raises:
            InvalidSetting: There is no such call, or there are several and no id.
        """
        return self.pending[pending_id(call_id, self.pending)]

    def settle(self, call: FunctionCall) -> None:
        """The call is answered."""
        del self.pending[call.call_id]
