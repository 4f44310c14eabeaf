"""Serving one call: admitted, decided, run, answered, recorded. Every step is an event."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, assert_never

from hatchway.core.calls import CallRecord, CallState, FunctionCall
from hatchway.core.decisions import Allow, AskFirst, Decision, Deny, Edit, NotRun, Ran, Settlement
from hatchway.core.errors import CheckpointRefused, ToolDenied, ToolError, ValueNotPortable
from hatchway.core.events import CallDecided, CallFailed, CallStarted, Emit, ToolOutput
from hatchway.core.output import MOST_ERROR_CHARACTERS, shortened
from hatchway.core.sandbox import CodeExecution
from hatchway.core.values import copied
from hatchway.gate.approval import Verdict
from hatchway.mode.call_book import CallBook
from hatchway.mode.grants import Grants
from hatchway.mode.passage import Admitted, Passage
from hatchway.trace.otel import call_span, is_traced, refused_span

Ask = Callable[[FunctionCall], Awaitable[Decision | None]]
"""Gets a decision about a call; None leaves it open, and the run pauses."""
ALLOWED = Allow()
_KEPT_RECORDS = 100  # of a run with very many calls the last ones are kept, so that its memory stays flat


@dataclass(frozen=True, slots=True)
class Held:
    """A call that waits for a person, with the digest of what that person is shown."""

    admitted: Admitted
    digest: str
    is_edited: bool = False
    """It runs with arguments a person gave; only where that was decided before a crash."""
    is_allowed: bool = False
    """Somebody allowed it before a crash: a tool that asks first need not ask again."""


class CallServer:
    """Serves the calls of one run, on whatever execution the run stands on now."""

    def __init__(
        self,
        *,
        run_id: str,
        execution: CodeExecution,
        passage: Passage,
        emit: Emit,
        ask: Ask,
        grants: Grants,
        book: CallBook | None = None,
    ) -> None:
        self.execution = execution
        self._records: deque[tuple[FunctionCall, CallState, Any, str, float]] = deque(maxlen=_KEPT_RECORDS)
        self._under_way: dict[str, FunctionCall] = {}
        self._ended = 0
        self.held: dict[str, Held] = {}
        self._run_id = run_id
        self._passage = passage
        self._emit = emit
        self._ask = ask
        self._grants = grants
        self._book = book

    def write_to(self, book: CallBook) -> None:
        """Have the calls written down here from now on."""
        self._book = book

    def records(self) -> tuple[CallRecord, ...]:
        """What became of the last calls; those whose tools were at work come last, as `started`."""
        ended = [
            CallRecord(call=call, state=state, value=value, error=error, seconds=seconds)
            for call, state, value, error, seconds in self._records
        ]
        started = [CallRecord(call=call, state="started") for call in self._under_way.values()]
        return (*ended, *started)[-_KEPT_RECORDS:]

    @property
    def forgotten(self) -> int:
        """How many calls came before those of `records`."""
        return max(0, self._ended + len(self._under_way) - _KEPT_RECORDS)

    def _record(self, call: FunctionCall, state: CallState, value: Any, error: str, seconds: float) -> None:
        self._under_way.pop(call.call_id, None)
        self._ended += 1
        self._records.append((call, state, value, error, seconds))

    def pending(self) -> tuple[FunctionCall, ...]:
        """The held calls, as copies: what a person is shown cannot be changed into something else that runs."""
        return tuple(_shown(held.admitted.call) for held in self.held.values())

    async def serve(self, call: FunctionCall) -> None:
        """Answer a call, or hold it for a person."""
        if self._book is not None:
            self._book.came(call, self.execution)
        try:
            admitted = self._passage.admit(call)
            found = self._passage.verdict(admitted)
            if found.kind == "run":
                if found.by == "rule":
                    self._decided(admitted.call, ALLOWED, "rule")
                allowed = admitted
            else:
                allowed = await self._decide(admitted, found)
        except ToolError as e:
            return await self._turn_away(call, e)
        if allowed is not None:
            await self._run(allowed, is_approved=found.kind == "ask")

    async def settle(self, call_id: str, decision: Settlement) -> None:
        """Answer a held call as a person decided.

        Raises:
            CheckpointRefused: The call is not what that person was shown.
        """
        held = self.held.pop(call_id)
        admitted = held.admitted
        if admitted.digest() != held.digest:
            raise CheckpointRefused(f"the arguments of call {call_id} changed since they were shown")
        match decision:
            case Ran(value=value):
                return await self._answer(admitted.call, value, seconds=0.0)
            case NotRun():
                return await self._run(admitted, is_edited=held.is_edited, is_approved=held.is_allowed)
            case Allow() | Deny() | Edit():
                pass
        try:
            allowed = self._settled(admitted, decision, "person")
        except ToolError as e:
            return await self._turn_away(admitted.call, e)
        await self._run(allowed, is_edited=isinstance(decision, Edit), is_approved=True)

    async def _decide(self, admitted: Admitted, found: Verdict) -> Admitted | None:
        call = admitted.call
        if found.kind == "deny":
            self._decided(call, Deny(found.reason), found.by)
            raise ToolDenied(found.reason)
        if self._grants.allow(call, self._passage.arguments(admitted)):
            self._decided(call, ALLOWED, "rule")
            return admitted
        return await self._asked(admitted)

    async def _asked(self, admitted: Admitted) -> Admitted | None:
        """What may run after somebody was asked; None when the call is held for a person."""
        call = admitted.call
        decision = await self._ask(_shown(call))
        if decision is None:
            again = admitted._replace(prepared=None)  # what runs is made from what was shown, whose digest is checked
            self.held[call.call_id] = held = Held(again, admitted.digest())
            if self._book is not None:
                self._book.held(admitted, held.digest)
            return None
        return self._settled(admitted, decision, "callback")

    def _settled(self, admitted: Admitted, decision: Decision, by: Literal["callback", "person"]) -> Admitted:
        self._decided(admitted.call, decision, by)
        match decision:
            case Allow():
                self._grants.add(admitted.call, decision)
                return admitted
            case Edit():
                return self._passage.edited(admitted, decision)
            case Deny(reason=reason):
                raise ToolDenied(reason or f"the call to {admitted.call.function_name} was denied")
            case _:
                assert_never(decision)

    async def _run_after_all(self, admitted: Admitted) -> None:
        """The tool did nothing and wants to be asked about first."""
        try:
            allowed = await self._asked(admitted)
        except ToolError as e:
            return await self._turn_away(admitted.call, e)
        if allowed is not None:
            await self._run(allowed, is_edited=allowed.call is not admitted.call, is_approved=True)

    async def _run(self, admitted: Admitted, *, is_edited: bool = False, is_approved: bool = False) -> None:
        call = admitted.call
        if self._book is not None:
            await self._book.intend(admitted, is_edited=is_edited)
        self._under_way[call.call_id] = call  # what its tool has done by then is not undone if the code ends before it
        self._emit(CallStarted(call, run_id=self._run_id))
        started = time.monotonic()
        try:
            if is_traced():
                with call_span(call.function_name, call_id=call.call_id, run_id=self._run_id):
                    value = await self._passage.run(admitted, self._run_id, is_approved=is_approved)
            else:
                value = await self._passage.run(admitted, self._run_id, is_approved=is_approved)
        except AskFirst:
            if not is_approved:
                del self._under_way[call.call_id]
                return await self._run_after_all(admitted)
            error = ToolError(f"the tool {call.function_name} was allowed to run and asks once more")
            return await self._refuse(call, error, seconds=time.monotonic() - started)
        except ToolError as e:
            return await self._refuse(call, e, seconds=time.monotonic() - started)
        await self._answer(call, value, seconds=time.monotonic() - started)

    async def _answer(self, call: FunctionCall, value: Any, *, seconds: float) -> None:
        try:
            if self._book is not None:
                self._book.done(call, value, seconds)  # before: answers are written down in the order they are given
            await self.execution.provide_result(value, call_id=call.call_id)
        except ValueNotPortable as e:
            error = ToolError(f"what the tool {call.function_name} returned cannot be given to the code: {e}")
            return await self._refuse(call, error, seconds=seconds)
        name, call_id = call.function_name, call.call_id
        self._record(call, "done", value, "", seconds)
        self._emit(ToolOutput(value, call_id=call_id, tool_name=name, seconds=seconds, run_id=self._run_id))

    async def _turn_away(self, call: FunctionCall, error: ToolError) -> None:
        """Refuse a call that never reached its tool."""
        if is_traced() and self._passage.knows(call.function_name):  # any other name is the code's own words
            refused_span(call.function_name, error, call_id=call.call_id, run_id=self._run_id)
        await self._refuse(call, error, seconds=0.0)

    async def _refuse(self, call: FunctionCall, error: ToolError, *, seconds: float) -> None:
        error = _bounded(error)
        if self._book is not None:
            self._book.refused(call, error, seconds)
        denied, text = isinstance(error, ToolDenied), str(error)
        state = "denied" if denied else "failed"
        name, call_id = call.function_name, call.call_id
        self._record(call, state, None, text, seconds)
        self._emit(
            CallFailed(text, call_id=call_id, tool_name=name, denied=denied, seconds=seconds, run_id=self._run_id)
        )
        await self.execution.provide_error(error, call_id=call_id)

    def _decided(
        self, call: FunctionCall, decision: Decision, by: Literal["tool", "rule", "callback", "person"]
    ) -> None:
        self._emit(CallDecided(call, decision=decision, by=by, run_id=self._run_id))


def _bounded(error: ToolError) -> ToolError:
    """The error with a message that is not too long to tell."""
    if len(error.message) <= MOST_ERROR_CHARACTERS:
        return error
    kind = ToolDenied if isinstance(error, ToolDenied) else ToolError
    return kind(shortened(error.message), hint=error.hint)


def _shown(call: FunctionCall) -> FunctionCall:
    return replace(call, kwargs=copied(dict(call.kwargs)))
