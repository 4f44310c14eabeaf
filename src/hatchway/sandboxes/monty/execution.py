"""The handle of one action in Monty: hands out its calls, takes their answers, tells its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pydantic_monty as pm

from hatchway.core.calls import FunctionCall, Waiting
from hatchway.core.codec import NotPortable
from hatchway.core.errors import (
    CodeExecutionError,
    CodeLimitError,
    CodeRuntimeError,
    CodeTimeoutError,
    HatchwayError,
)
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult, Usage
from hatchway.core.sandbox import CodeExecution
from hatchway.sandboxes.monty import failures
from hatchway.sandboxes.monty.checkpoint import Checkpoint
from hatchway.sandboxes.monty.clock import RunClock
from hatchway.sandboxes.monty.files import Files
from hatchway.sandboxes.monty.lease import Lease
from hatchway.sandboxes.monty.ledger import Ledger
from hatchway.sandboxes.monty.machine import LATER, Machine, Stop
from hatchway.sandboxes.monty.offer import Offer
from hatchway.sandboxes.monty.printed import Printed
from hatchway.sandboxes.monty.source import Source, not_awaited
from hatchway.sandboxes.monty.values import TooLarge, from_guest, into_guest


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What is to be run, and what it may use."""

    code: str
    offer: Offer
    limits: Limits
    printed: Printed
    files: Files
    environ: Mapping[str, str]
    is_session: bool = False
    """The worker is kept when the action ends."""


class MontyExecution(CodeExecution):
    """One action in a Monty worker.

    Args:
        action: What to run.
        lease: The worker; given back when the action ends, unless it is a session's.
        before: The state of a dumped execution to go on from.
    """

    def __init__(self, action: Action, lease: Lease, *, before: Checkpoint | None = None) -> None:
        self._action, self._lease = action, lease
        self.on_end: Callable[[MontyExecution], object] = lambda _: None
        """Called once when the action has ended."""
        self._feed = before.feed if before else lease.feeds
        self._source = Source(action.code, f"<python-input-{self._feed}>")
        self._end: ExecutionResult | HatchwayError | None = None
        self._asker: asyncio.Future[None] | None = None
        self._clock = RunClock(action.limits.wall_seconds, self._on_time_over, ran=before.ran if before else 0.0)
        self._machine = Machine(
            lease, action.offer, self._clock, self, environ=action.environ, has_files=action.files.is_any
        )
        if before or action.is_session:
            self._clock.be_strict()
        if before is None:
            self._ledger = Ledger(action.limits)
        else:
            self._ledger = Ledger(action.limits, pending=before.pending, unstarted=before.unstarted, made=before.made)
            self._machine.answers |= before.answers

    def begin(self, bindings: Mapping[str, Any]) -> None:
        """Start the code with these names bound."""
        self._lease.feeds += 1
        session, action = self._lease.session, self._action
        names = {**action.offer.bindings(), **bindings}
        self._machine.feed(
            lambda: session.feed_start(
                action.code, inputs=names, print_callback=action.printed, **action.files.feed_options()
            )
        )

    def stand_at(self, stop: Stop) -> None:
        """Go on from where a dumped execution stood."""
        self._machine.stand_at(stop)

    async def next(self) -> FunctionCall | Waiting | ExecutionResult:
        """As the contract says. Cancelling it loses nothing."""
        while (event := self.poll()) is None:
            if self._asker is not None:
                raise RuntimeError("next() is already being awaited")
            self._asker = asyncio.get_running_loop().create_future()
            try:
                await self._asker
            finally:
                self._asker = None
        return event

    def poll(self) -> FunctionCall | Waiting | ExecutionResult | None:
        """As the contract says."""
        if self._end is not None:
            self._ledger.forget()
            if isinstance(self._end, HatchwayError):
                raise self._end.with_traceback(None)
            return self._end
        if (call := self._ledger.unread()) is not None:
            return call
        return self._ledger.waiting() if self._machine.is_standing else None

    async def provide_result(self, value: Any, *, call_id: str | None = None) -> None:
        """As the contract says; a value past `Limits.value_bytes` cannot cross either."""
        call = self._ledger.find(call_id)
        root = f"result of {call.function_name}"
        self._answer(call, {"return_value": into_guest(value, root=root, limit=self._action.limits.value_bytes)})

    async def provide_error(self, error: BaseException, *, call_id: str | None = None) -> None:
        """As the contract says; Monty has no classes for errors of tools, so theirs arrive as `RuntimeError`."""
        self._answer(self._ledger.find(call_id), failures.raised_inside(error))

    def dump(self) -> bytes | None:
        """As the contract says."""
        if self._end is not None or not self._ledger.is_read:
            raise RuntimeError("the execution is not waiting")
        vm = self._machine.dump()
        action, ledger = self._action, self._ledger
        return Checkpoint(
            code=action.code,
            styles=action.offer.styles,
            limits=action.limits,
            pending=tuple(ledger.pending.values()),
            unstarted=tuple(ledger.unstarted.values()),
            answers=self._machine.answers,
            made=ledger.made,
            ran=self._clock.ran,
            stdout=action.printed.stdout,
            stderr=action.printed.stderr,
            feed=self._feed,
        ).sealed(vm)

    async def cancel(self) -> None:
        """As the contract says."""
        await self.abandon(CodeRuntimeError("the execution was cancelled"))

    async def abandon(self, why: HatchwayError) -> None:
        """As `cancel`, for a reason that `next` tells."""
        self._finish(why)
        self._ledger.forget()
        if self._lease.is_over:
            await self._lease.given_back()

    @property
    def is_over(self) -> bool:
        """Whether the action has ended."""
        return self._end is not None

    def on_call(self, stop: pm.AsyncFunctionSnapshot) -> pm.ExternalResult | None:
        """Take in a call: hand it out, keep it until it is awaited, or refuse it inside the code."""
        offer = self._action.offer
        name = offer.name_of(stop)
        is_async = offer.styles.get(name)
        if is_async is None:
            return offer.unknown(name)
        if fault := self._source.style_fault(name, stop, is_async=is_async):
            return {"exc_type": "TypeError", "message": fault}
        try:
            call = self._call(name, stop)
        except NotPortable as e:
            return {"exc_type": "TypeError", "message": _refusal(e, name)}
        except TooLarge:
            self._finish(failures.over_value(self._action.limits, f"an argument of {name}"))
            return None
        if (error := self._ledger.enter(call)) is not None:
            self._finish(error)
        elif is_async:
            self._ledger.postpone(call, stop.position)
            return LATER
        else:
            self._ledger.hand_out(call)
        return None

    def on_blocked(self) -> None:
        """The calls nobody has seen yet are awaited now."""
        self._ledger.start()

    def on_stand(self) -> None:
        """Whoever asks is told."""
        self._wake()

    def on_complete(self, output: Any) -> None:
        """The code ended: give the value it ends in, if that can cross."""
        limits = self._action.limits
        if self._ledger.unstarted:
            self._finish(self._never_awaited(), is_run_over=True)
            return
        try:
            is_value = output is not None and self._source.ends_in_expression
            value = from_guest(output, limit=limits.value_bytes, tool_of=self._tool_of) if is_value else None
        except NotPortable as e:
            self._finish(CodeRuntimeError(f"TypeError: {e.path('output')} {e.reason}"), is_run_over=True)
        except TooLarge:
            self._finish(failures.over_value(limits, "the output"), is_run_over=True)
        else:
            self._finish(self._result(value), is_run_over=True)

    def on_failure(self, error: BaseException) -> None:
        """The code, its worker or Monty failed."""
        ended = failures.ended_in(error, self._action.limits, feed=self._feed, has_run=self._machine.stops > 0)
        if self._ledger.unstarted and "coroutine" in ended.message:
            ended.hint = not_awaited(next(iter(self._ledger.unstarted.values())).function_name)
        self._finish(ended, is_run_over=True)

    def _on_time_over(self) -> None:
        self._finish(failures.timeout(self._action.limits))

    def _answer(self, call: FunctionCall, settled: pm.ExternalSettledResult) -> None:
        self._ledger.settle(call)
        if self._end is None:  # otherwise the code is dead and `next` will tell
            self._machine.answer(int(call.call_id), settled)

    def _call(self, name: str, stop: pm.AsyncFunctionSnapshot) -> FunctionCall:
        limit = self._action.limits.value_bytes
        args, kwargs = stop.args, stop.kwargs
        return FunctionCall(
            call_id=str(stop.call_id),
            function_name=name,
            args=from_guest(args, limit=limit, tool_of=self._tool_of) if args else (),
            kwargs=from_guest(kwargs, limit=limit, tool_of=self._tool_of) if kwargs else {},
        )

    def _tool_of(self, number: int) -> str | None:
        call = self._ledger.unstarted.get(str(number)) or self._ledger.pending.get(str(number))
        return call.function_name if call else None

    def _never_awaited(self) -> CodeRuntimeError:
        call = next(iter(self._ledger.unstarted.values()))
        place = self._ledger.places.get(call.call_id)
        line = self._source.line_of(place) if place else None
        shown = (
            f'Traceback (most recent call last):\n  File "<action>", line {line[0]}\n    {line[1]}\n' if line else ""
        )
        return CodeRuntimeError(f"{shown}TypeError: {not_awaited(call.function_name)}")

    def _result(self, output: Any) -> ExecutionResult:
        printed = self._action.printed
        usage = Usage(wall_seconds=self._clock.ran, calls=self._ledger.made)
        return ExecutionResult(
            output=output, stdout=printed.stdout, stderr=printed.stderr, usage=usage, tier="language"
        )

    def _finish(self, end: ExecutionResult | HatchwayError, *, is_run_over: bool = False) -> None:
        """End the action. A worker whose code still runs, or was stopped in the middle of something, is killed."""
        if self._end is not None:
            return
        is_stuck = not is_run_over and (self._machine.is_flying or self._action.is_session)
        self._machine.halt()
        if isinstance(end, CodeExecutionError):
            end.stdout, end.stderr = self._action.printed.stdout, self._action.printed.stderr
        self._end = end
        if is_stuck or isinstance(end, CodeTimeoutError) or _is_memory(end):
            self._lease.kill()
        if not self._action.is_session or self._lease.is_dead:
            self._lease.give_back()
        self.on_end(self)
        self._wake()

    def _wake(self) -> None:
        if self._asker is not None and not self._asker.done():
            self._asker.set_result(None)


def _is_memory(end: ExecutionResult | HatchwayError) -> bool:
    return isinstance(end, CodeLimitError) and end.limit == "memory_bytes"


def _refusal(error: NotPortable, name: str) -> str:
    """The refusal of an argument, which is told by its place from one or by its name."""
    place = error.keys.pop()
    which = str(int(place) + 1) if place.isdigit() else place
    return f"{error.path(f'argument {which} of {name} ')} {error.reason}"
