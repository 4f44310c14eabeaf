"""Serving one call: admitted, decided, run, answered, recorded. Every step is an event."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, assert_never

from hatchway.core.calls import CallRecord, CallState, FunctionCall
from hatchway.core.decisions import Allow, Decision, Deny, Edit
from hatchway.core.errors import CheckpointRefused, ToolDenied, ToolError, ValueNotPortable
from hatchway.core.events import AgentEvent, CallDecided, CallFailed, CallStarted, ToolOutput
from hatchway.core.sandbox import CodeExecution
from hatchway.core.values import copied
from hatchway.gate.approval import Verdict
from hatchway.mode.passage import Admitted, Passage
from hatchway.trace.otel import call_span, is_traced

Emit = Callable[[AgentEvent], None]
"""Takes each event as it happens."""
Ask = Callable[[FunctionCall], Awaitable[Decision | None]]
"""Gets a decision about a call; None leaves it open, and the run pauses."""
_KEPT_RECORDS = 1_000  # of a run with very many calls the last ones are kept, so that its memory stays flat


@dataclass(frozen=True, slots=True)
class Held:
    """A call that waits for a person, with the digest of what that person is shown."""

    admitted: Admitted
    digest: str


class CallServer:
    """Serves the calls of one run, on whatever execution the run stands on now."""

    def __init__(self, *, run_id: str, execution: CodeExecution, passage: Passage, emit: Emit, ask: Ask) -> None:
        self.execution = execution
        self._records: deque[tuple[FunctionCall, CallState, Any, str, float]] = deque(maxlen=_KEPT_RECORDS)
        self.held: dict[str, Held] = {}
        self._run_id = run_id
        self._passage = passage
        self._emit = emit
        self._ask = ask

    def records(self) -> tuple[CallRecord, ...]:
        """What became of the last calls."""
        return tuple(
            CallRecord(call=call, state=state, value=value, error=error, seconds=seconds)
            for call, state, value, error, seconds in self._records
        )

    def pending(self) -> tuple[FunctionCall, ...]:
        """The held calls, as copies: what a person is shown cannot be changed into something else that runs."""
        return tuple(_shown(held.admitted.call) for held in self.held.values())

    async def serve(self, call: FunctionCall) -> None:
        """Answer a call, or hold it for a person."""
        try:
            admitted = self._passage.admit(call)
            found = self._passage.verdict(admitted)
            if found.kind == "run":
                if found.by == "rule":
                    self._decided(admitted.call, Allow(), "rule")
                allowed = admitted
            else:
                allowed = await self._decide(admitted, found)
        except ToolError as e:
            return await self._refuse(call, e, seconds=0.0)
        if allowed is not None:
            await self._run(allowed)

    async def settle(self, call_id: str, decision: Decision) -> None:
        """Answer a held call as a person decided.

        Raises:
            CheckpointRefused: The call is not what that person was shown.
        """
        held = self.held.pop(call_id)
        if held.admitted.digest() != held.digest:
            raise CheckpointRefused(f"the arguments of call {call_id} changed since they were shown")
        try:
            allowed = self._settled(held.admitted, decision, "person")
        except ToolError as e:
            return await self._refuse(held.admitted.call, e, seconds=0.0)
        await self._run(allowed)

    async def _decide(self, admitted: Admitted, found: Verdict) -> Admitted | None:
        if found.kind == "deny":
            self._decided(admitted.call, Deny(found.reason), found.by)
            raise ToolDenied(found.reason)
        decision = await self._ask(_shown(admitted.call))
        if decision is None:
            again = replace(admitted, prepared=None)  # what runs is made from what was shown, whose digest is checked
            self.held[admitted.call.call_id] = Held(again, admitted.digest())
            return None
        return self._settled(admitted, decision, "callback")

    def _settled(self, admitted: Admitted, decision: Decision, by: Literal["callback", "person"]) -> Admitted:
        self._decided(admitted.call, decision, by)
        match decision:
            case Allow():
                return admitted
            case Edit():
                return self._passage.edited(admitted, decision)
            case Deny(reason=reason):
                raise ToolDenied(reason or f"the call to {admitted.call.function_name} was denied")
            case _:
                assert_never(decision)

    async def _run(self, admitted: Admitted) -> None:
        call = admitted.call
        self._emit(CallStarted(call, run_id=self._run_id))
        started = time.monotonic()
        try:
            if is_traced():
                with call_span(call.function_name, call_id=call.call_id, run_id=self._run_id):
                    value = await self._passage.run(admitted, self._run_id)
            else:
                value = await self._passage.run(admitted, self._run_id)
        except ToolError as e:
            return await self._refuse(call, e, seconds=time.monotonic() - started)
        await self._answer(call, value, seconds=time.monotonic() - started)

    async def _answer(self, call: FunctionCall, value: Any, *, seconds: float) -> None:
        try:
            await self.execution.provide_result(value, call_id=call.call_id)
        except ValueNotPortable as e:
            error = ToolError(f"the tool {call.function_name} returned something that cannot cross the wall: {e}")
            return await self._refuse(call, error, seconds=seconds)
        name, call_id = call.function_name, call.call_id
        self._records.append((call, "done", value, "", seconds))
        self._emit(ToolOutput(value, call_id=call_id, tool_name=name, seconds=seconds, run_id=self._run_id))

    async def _refuse(self, call: FunctionCall, error: ToolError, *, seconds: float) -> None:
        denied, text = isinstance(error, ToolDenied), str(error)
        state = "denied" if denied else "failed"
        name, call_id = call.function_name, call.call_id
        self._records.append((call, state, None, text, seconds))
        self._emit(
            CallFailed(text, call_id=call_id, tool_name=name, denied=denied, seconds=seconds, run_id=self._run_id)
        )
        await self.execution.provide_error(error, call_id=call_id)

    def _decided(
        self, call: FunctionCall, decision: Decision, by: Literal["tool", "rule", "callback", "person"]
    ) -> None:
        self._emit(CallDecided(call, decision=decision, by=by, run_id=self._run_id))


def _shown(call: FunctionCall) -> FunctionCall:
    return replace(call, kwargs=copied(dict(call.kwargs)))
