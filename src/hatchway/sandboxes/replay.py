"""Replay: a recorded action is run again, its calls are answered as before, until it stands where it stood.

Calls are matched by what they are, not by when they come; answers are given in the recorded order, each once every call
that was made before it has come again. No call that is not in the recording leaves here before all of it is through.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from hatchway.core.calls import FunctionCall, Waiting
from hatchway.core.errors import CheckpointRefused, CodeExecutionError, CodeTimeoutError, ReplayDiverged
from hatchway.core.recording import RecordedAnswer, RecordedCall, Recording, identity
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeExecution, OnDisplay, OnOutput
from hatchway.core.values import as_python
from hatchway.sandboxes.answer_order import AnswerOrder
from hatchway.sandboxes.repeatable import Repeatable

_SHOWN = 200
LOOK_SECONDS, MOST_LOOKS = 0.05, 100
"""How often code that seems to wait beside its channel is looked at again before it counts as waiting."""
Start = Callable[[OnOutput | None], Awaitable[Repeatable]]
"""Starts the recorded code from its beginning."""


async def replayed(recording: Recording, start: Start, on_output: OnOutput | None) -> CodeExecution:
    """The recorded action, led to where it stood.

    Raises:
        ReplayDiverged: The code went another way; it is dead.
        CheckpointRefused: It took too long.
    """
    told = quiet(on_output, recording.printed)
    if not recording.calls:
        return await start(told)
    execution = ReplayExecution(await start(told), recording)
    try:
        await execution.lead()
    except BaseException:
        await execution.cancel()
        raise
    return execution


async def run_to_end(recording: Recording, start: Start) -> None:
    """An earlier action of a session, run again to its end.

    Raises:
        ReplayDiverged, CheckpointRefused: As `replayed`.
    """
    execution = await replayed(recording, start, None)
    try:
        event = await execution.next()
    except CodeExecutionError:
        return  # it ended so before: what it had done until then is state too
    if isinstance(event, FunctionCall):
        await execution.cancel()
        raise ReplayDiverged(expected="", actual=shown(event), line=_line(execution, event.call_id))


def quiet(on_output: OnOutput | None, printed: Mapping[str, int]) -> OnOutput | None:
    """A listener that hears nothing of what was told already."""
    if on_output is None or not any(printed.values()):
        return on_output
    left = {stream: printed.get(stream, 0) for stream in ("stdout", "stderr")}

    def tell(stream: Literal["stdout", "stderr"], text: str) -> None:
        known = min(left[stream], len(text))
        left[stream] -= known
        if text[known:]:
            on_output(stream, text[known:])

    return tell


def shown(call: FunctionCall) -> str:
    """A call as code, cut when it is long."""
    parts = [*map(as_python, call.args), *(f"{name}={as_python(value)}" for name, value in call.kwargs.items())]
    text = f"{call.function_name}({', '.join(parts)})"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class ReplayExecution(CodeExecution):
    """An execution that is led through a recording, and then is as any other.

    Args:
        inner: The same code, from its beginning.
        recording: What it did before.
    """

    is_dump_exact = False

    def __init__(self, inner: Repeatable, recording: Recording) -> None:
        self._inner = inner
        self._recording = recording
        self._open: dict[str, list[RecordedCall]] = {}
        for recorded in recording.calls:
            self._open.setdefault(recorded.identity, []).append(recorded)
        self._order = AnswerOrder(recording)
        self._looks = MOST_LOOKS
        self._taken = set(self._order.missing)
        self._inner_ids: dict[str, str] = {}
        self._own_ids: dict[str, str] = {}
        self._came: dict[str, FunctionCall] = {}
        self._new: list[FunctionCall] = []
        self._fresh: deque[FunctionCall] = deque()

    async def lead(self) -> None:
        """Lead the code to where the recording ends."""
        while True:
            while (answers := self._order.due()) is not None:
                await self._inner.provide_answers([self._inward(answer) for answer in answers])
            if self._order.is_through:
                break
            await self._lead_on()
        answered = {answer.call_id for answer in self._recording.answers}
        pending = [self._came[c.call.call_id] for c in self._recording.calls if c.call.call_id not in answered]
        self._fresh.extend([*pending, *self._new])
        self._inner.stands_at(self._recording.ran)

    @property
    def standing_at(self) -> tuple[FunctionCall, ...]:
        """The calls that are handed out next, the pending ones of the recording first."""
        return tuple(self._fresh)

    async def next(self) -> FunctionCall | Waiting | ExecutionResult:
        """As the contract says."""
        if self._fresh:
            return self._fresh.popleft()
        return self._outward(await self._inner.next())

    def poll(self) -> FunctionCall | Waiting | ExecutionResult | None:
        """As the contract says."""
        if self._fresh:
            return self._fresh.popleft()
        event = self._inner.poll()
        return None if event is None else self._outward(event)

    def watch_displays(self, on_display: OnDisplay) -> None:
        """As the contract says; what was shown on the way is told too."""
        self._inner.watch_displays(on_display)

    async def provide_result(self, value: Any, *, call_id: str | None = None) -> None:
        """As the contract says."""
        await self._inner.provide_result(value, call_id=self._inner_ids.get(call_id, call_id) if call_id else None)

    async def provide_error(self, error: BaseException, *, call_id: str | None = None) -> None:
        """As the contract says."""
        await self._inner.provide_error(error, call_id=self._inner_ids.get(call_id, call_id) if call_id else None)

    async def provide_answers(self, answers: Sequence[RecordedAnswer]) -> None:
        """As the contract says."""
        await self._inner.provide_answers([self._inward(answer) for answer in answers])

    def trail(self, call_id: str) -> Mapping[str, Any]:
        """As the contract says."""
        return self._inner.trail(self._inner_ids.get(call_id, call_id))

    @property
    def ran(self) -> float:
        """As the contract says."""
        return self._inner.ran

    def recording(self) -> Recording | None:
        """The action with what was said so far, in the code that runs now."""
        return self._inner.recording()

    def own_id(self, inner_id: str) -> str:
        """The id by which the host knows a call of the code that runs now."""
        return self._own_ids.get(inner_id, inner_id)

    def dump(self) -> bytes | None:
        """As the contract says."""
        if self._fresh:
            raise RuntimeError("the execution is not waiting")
        return self._inner.dump(self.own_id)

    async def cancel(self) -> None:
        """As the contract says."""
        self._fresh.clear()
        await self._inner.cancel()

    async def _lead_on(self) -> None:
        """Take the next thing the code does."""
        try:
            event = await self._inner.next()
        except CodeTimeoutError as e:
            raise CheckpointRefused(f"running the code again took too long: {e.message}") from e
        except CodeExecutionError as e:
            raise self._diverged(f"an error: {e.message.strip().splitlines()[-1]}") from e
        match event:
            case FunctionCall():
                self._take(event)
            case Waiting() if self._order.is_mixed and self._looks:
                self._looks -= 1  # that code waits beside its channel is a guess
                await asyncio.sleep(LOOK_SECONDS)
            case Waiting():
                raise self._diverged(shown(self._new[0]) if self._new else "no call: it waits")
            case ExecutionResult():
                raise self._diverged("the end of the code")

    def _take(self, call: FunctionCall) -> None:
        """A call has come: one of the recording again, or a new one that has to wait."""
        known = self._open.get(identity(call, self._recording.seed))
        if not known:
            own = _unused(call.call_id, self._taken)
            self._name(call.call_id, own)
            self._new.append(_with_id(call, own))
            return
        task = self._inner.trail(call.call_id).get("task")
        recorded = next((k for k in known if k.trail.get("task") == task), known[0])
        known.remove(recorded)
        own = recorded.call.call_id
        self._order.came(own)
        self._name(call.call_id, own)
        self._came[own] = _with_id(call, own)

    def _name(self, inner_id: str, own_id: str) -> None:
        self._taken.add(own_id)
        if inner_id != own_id:
            self._inner_ids[own_id], self._own_ids[inner_id] = inner_id, own_id

    def _inward(self, answer: RecordedAnswer) -> RecordedAnswer:
        inner = self._inner_ids.get(answer.call_id)
        return answer if inner is None else replace(answer, call_id=inner)

    def _outward(self, event: FunctionCall | Waiting | ExecutionResult) -> FunctionCall | Waiting | ExecutionResult:
        match event:
            case FunctionCall():
                if event.call_id not in self._own_ids:
                    self._name(event.call_id, _unused(event.call_id, self._taken))
                return self._renamed(event)
            case Waiting(pending=pending) if self._own_ids:
                return Waiting(tuple(map(self._renamed, pending)))
            case _:
                return event

    def _renamed(self, call: FunctionCall) -> FunctionCall:
        own = self._own_ids.get(call.call_id)
        return call if own is None else _with_id(call, own)

    def _diverged(self, actual: str) -> ReplayDiverged:
        first = next(iter(self._order.missing.values()), None)
        line = _line(self._inner, self._new[0].call_id, self._inner_ids) if self._new else 0
        return ReplayDiverged(expected=shown(first.call) if first else "", actual=actual, line=line)


def _line(execution: CodeExecution, call_id: str, inner_ids: Mapping[str, str] | None = None) -> int:
    line = execution.trail((inner_ids or {}).get(call_id, call_id)).get("line", 0)
    return line if isinstance(line, int) else 0


def _with_id(call: FunctionCall, call_id: str) -> FunctionCall:
    return call if call.call_id == call_id else replace(call, call_id=call_id)


def _unused(call_id: str, taken: set[str]) -> str:
    """The id itself, or one like it that no call has: the code may number its calls otherwise than before."""
    number, own = 0, call_id
    while own in taken:
        number += 1
        own = f"{call_id}+{number}"
    return own
