"""The handle of one action in Monty: hands out its calls, takes their answers, tells its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pydantic_monty as pm

from hatchway.core.calls import FunctionCall, Waiting
from hatchway.core.errors import (
    CodeExecutionError,
    CodeLimitError,
    CodeRuntimeError,
    CodeTimeoutError,
    HatchwayError,
)
from hatchway.core.results import ExecutionResult, Usage
from hatchway.sandboxes.monty import failures
from hatchway.sandboxes.monty.action import Action
from hatchway.sandboxes.monty.checkpoint import Checkpoint
from hatchway.sandboxes.monty.clock import RunClock
from hatchway.sandboxes.monty.intake import Intake
from hatchway.sandboxes.monty.inward import into_guest
from hatchway.sandboxes.monty.lease import Lease
from hatchway.sandboxes.monty.ledger import Ledger
from hatchway.sandboxes.monty.machine import Machine, Stop
from hatchway.sandboxes.monty.repeat import Repeat
from hatchway.sandboxes.monty.source import Source
from hatchway.sandboxes.repeatable import Repeatable
from hatchway.transports.guest.wakeup import Wakeup

BURST = 8
"""Times in a row that the loop stands by for the worker before it has its turn."""


class MontyExecution(Repeatable):
    """One action in a Monty worker.

    Args:
        action: What to run.
        lease: The worker; given back when the action ends, unless it is a session's.
        before: The state of a dumped execution to go on from.
    """

    is_dump_exact = True

    def __init__(self, action: Action, lease: Lease, *, before: Checkpoint | None = None) -> None:
        self._action, self._lease = action, lease
        self.on_end: Callable[[MontyExecution], object] = lambda _: None
        """Called once when the action has ended."""
        self._feed = before.feed if before else lease.feeds
        self._burst = 0
        self.ended_at: float | None = None
        """When it ended, by the clock of the event loop."""
        self._ending: ExecutionResult | HatchwayError | None = None
        self._end: ExecutionResult | HatchwayError | None = None
        self._came = Wakeup(asyncio.get_running_loop())
        self._clock = RunClock(action.limits.wall_seconds, self._on_time_over, ran=before.ran if before else 0.0)
        self._trails: dict[str, Mapping[str, Any]] = {}
        self._machine = Machine(
            lease,
            action.offer,
            self._clock,
            self,
            environ=action.environ,
            output=action.output,
            limits=action.limits,
            repeat=action.repeat,
        )
        if before or action.is_session:
            self._clock.be_strict()
        if before is None:
            self._ledger = Ledger(action.limits)
        else:
            self._ledger = Ledger(action.limits, pending=before.pending, made=before.made)
            self._machine.answers |= before.answers
        self._source = Source(action.code, f"<python-input-{self._feed}>")
        self._intake = Intake(action.offer, self._source, action.limits, self._ledger)

    def begin(self, bindings: Mapping[str, Any]) -> None:
        """Start the code with these names bound."""
        self._lease.feeds += 1
        session, action = self._lease.session, self._action
        names = {**action.offer.bindings(), **bindings}
        self._machine.feed(
            lambda: session.feed_start(
                action.code,
                inputs=names,
                print_callback=action.printed,
                **action.files.feed_options(action.output, action.limits),
            )
        )

    def stand_at(self, stop: Stop) -> None:
        """Go on from where a dumped execution stood."""
        self._machine.stand_at(stop)

    async def next(self) -> FunctionCall | Waiting | ExecutionResult:
        """As the contract says. Cancelling it loses nothing."""
        while (event := self.poll()) is None:
            if self._came.is_awaited:
                raise RuntimeError("next() is already being awaited")
            self._burst += 1
            if self._burst > BURST or not self._machine.glance():
                self._burst = 0
                await self._came
        return event

    def poll(self) -> FunctionCall | Waiting | ExecutionResult | None:
        """As the contract says."""
        if self._end is not None:
            self._ledger.forget()
            if isinstance(self._end, HatchwayError):
                raise self._end.with_traceback(None)
            return self._end
        if self._ending is not None:
            return None  # told when the worker is back or dead: the loop may be closed right after
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

    def trail(self, call_id: str) -> Mapping[str, Any]:
        """As the contract says."""
        return self._trails.pop(call_id, {})

    @property
    def ran(self) -> float:
        """As the contract says."""
        return self._clock.ran

    def recording(self) -> None:
        """None: what Monty is dumped as holds its state itself."""

    def stands_at(self, ran: float) -> None:
        """As `Repeatable` says."""
        self._clock.set(ran)

    def dump(self, own_id: Callable[[str], str] = str) -> bytes | None:
        """As the contract says; calls keep the ids Monty gives them, which are the same each time."""
        if self._ending is not None or not self._ledger.is_read:
            raise RuntimeError("the execution is not waiting")
        vm, answers = self._machine.dump()
        action, ledger = self._action, self._ledger
        return Checkpoint(
            code=action.code,
            styles=action.offer.styles,
            limits=action.limits,
            pending=tuple(ledger.pending.values()),
            answers=answers,
            made=ledger.made,
            ran=self._clock.ran,
            stdout=action.printed.stdout,
            stderr=action.printed.stderr,
            feed=self._feed,
            files={} if action.output is None else action.output.kept(),
            repeat=None if action.repeat is None else (action.repeat.seed, action.repeat.drawn, action.repeat.reads),
        ).sealed(vm)

    @property
    def is_dead(self) -> bool:
        """Whether its worker takes no more actions."""
        return self._lease.is_over

    async def wait_gone(self) -> None:
        """Until its worker is back in the pool, or dead."""
        await self._lease.given_back()

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
        return self._ending is not None

    def on_call(self, stop: pm.FunctionSnapshot) -> pm.ExternalResult | None:
        """Hand out a call, keep it until the code stands, or refuse it inside the code."""
        if self._action.repeat is not None:
            self._keep_trail(stop, self._action.repeat)
        taken = self._intake.take(stop)
        if not isinstance(taken, HatchwayError):
            return taken
        self._finish(taken)
        return None

    def on_blocked(self) -> None:
        """Hand out the async calls made on the way here."""
        self._ledger.start()

    def on_turn(self) -> None:
        """What was printed on the way is streamed first."""
        self._action.printed.stream()

    def on_told(self) -> None:
        """Whoever asks is woken."""
        self._came.wake()

    def on_complete(self, output: Any) -> None:
        """The code ended: give the value it ends in, if that can cross."""
        try:
            end = self._result(self._intake.output(output))
        except CodeExecutionError as e:
            end = e
        self._finish(end, is_run_over=True)

    def on_failure(self, error: BaseException) -> None:
        """The code, its worker or Monty failed."""
        if failures.is_exit(error):
            return self.on_complete(None)
        end = failures.ended_in(error, self._action.limits, feed=self._feed, has_run=self._machine.stops > 0)
        if "coroutine" in end.message:
            end.hint = self._intake.style_hint() or end.hint
        self._finish(end, is_run_over=True)

    def _on_time_over(self) -> None:
        self._finish(failures.timeout(self._action.limits))

    def _keep_trail(self, stop: pm.FunctionSnapshot, repeat: Repeat) -> None:
        ledger = self._ledger
        trail: dict[str, Any] = {"answers": ledger.made - len(ledger.pending) - len(ledger.unstarted)}
        if reads := repeat.next_call():
            trail["clock"] = reads
        if repeat.is_again and (where := self._source.line_of(stop.position)) is not None:
            trail["line"] = where[0]
        self._trails[str(stop.call_id)] = trail

    def _answer(self, call: FunctionCall, settled: pm.ExternalSettledResult) -> None:
        self._ledger.settle(call)
        if self._ending is None:  # otherwise the code is dead and `next` will tell
            self._machine.answer(int(call.call_id), settled)

    def _result(self, output: Any) -> ExecutionResult:
        printed = self._action.printed
        usage = Usage(wall_seconds=self._clock.ran, calls=self._ledger.made)
        return ExecutionResult(
            output=output, stdout=printed.stdout, stderr=printed.stderr, usage=usage, tier="language"
        )

    def _finish(self, end: ExecutionResult | HatchwayError, *, is_run_over: bool = False) -> None:
        """End the action. A worker whose code still runs, or was stopped in the middle of something, is killed."""
        if self._ending is not None:
            return
        is_stuck = not is_run_over and (self._machine.is_flying or self._action.is_session)
        self._machine.halt()
        self._action.printed.finish()
        if isinstance(end, CodeExecutionError):
            end.stdout, end.stderr = self._action.printed.stdout, self._action.printed.stderr
        self._ending, self.ended_at = end, asyncio.get_running_loop().time()
        if is_stuck or isinstance(end, CodeTimeoutError) or _is_memory(end):
            self._lease.kill()
        if not self._action.is_session or self._lease.is_dead:
            self._lease.give_back(self._tell_end)
        else:
            self._tell_end()

    def _tell_end(self) -> None:
        self._end = self._ending
        self.on_end(self)
        self._came.wake()


def _is_memory(end: ExecutionResult | HatchwayError) -> bool:
    return isinstance(end, CodeLimitError) and end.limit == "memory_bytes"
