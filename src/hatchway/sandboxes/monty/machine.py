"""The machine: one action in a Monty worker, driven from stop to stop.

All of it happens in callbacks of the event loop, so the action goes on whether or not somebody asks for events. A
flight is the time between two stops, when the worker has the turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import pydantic_monty as pm

from hatchway.core.limits import Limits
from hatchway.sandboxes.monty import system
from hatchway.sandboxes.monty.clock import RunClock
from hatchway.sandboxes.monty.lease import Lease
from hatchway.sandboxes.monty.offer import Offer
from hatchway.sandboxes.monty.output import MontyOutput
from hatchway.sandboxes.monty.repeat import Repeat

LATER: pm.ExternalFuture = {"future": ...}
"""The answer to an async call: go on, the result comes when everything else is blocked."""

_MANY = 100
"""Stops the host answers itself, such as unknown names, after which its own clock counts."""

Stop = pm.FunctionSnapshot | pm.FutureSnapshot
Snapshot = Stop | pm.NameLookupSnapshot | pm.MontyComplete


class Driver(Protocol):
    """Whom the machine tells what happens. Each is called on the event loop."""

    def on_call(self, stop: pm.FunctionSnapshot) -> pm.ExternalResult | None:
        """The code called a function. Gives the answer to go on with, or None to stand at the call."""
        ...

    def on_blocked(self) -> None:
        """Every task of the code awaits something: the async calls made so far are to be served."""
        ...

    def on_turn(self) -> None:
        """The worker gave the turn back; what comes of it is told next."""
        ...

    def on_told(self) -> None:
        """All that came of it was told."""
        ...

    def on_complete(self, output: Any) -> None:
        """The code ended."""
        ...

    def on_failure(self, error: BaseException) -> None:
        """The code, the worker or Monty failed."""
        ...


class Machine:
    """Drives one action.

    Args:
        lease: The worker.
        offer: What names stand for.
        clock: Runs while the worker has the turn or the code sleeps.
        environ: The environment variables of the code.
        output: Where the code leaves files; None where there are no files at all.
        limits: How many of them there may be.
        repeat: Answers clocks and randomness of an action that can be run again.
        driver: Told what happens.
    """

    def __init__(
        self,
        lease: Lease,
        offer: Offer,
        clock: RunClock,
        driver: Driver,
        *,
        environ: Mapping[str, str],
        output: MontyOutput | None,
        limits: Limits,
        repeat: Repeat | None = None,
    ) -> None:
        self._lease, self._offer, self._clock, self._driver = lease, offer, clock, driver
        self._environ, self._output, self._limits, self._repeat = environ, output, limits, repeat
        self._stop: Stop | None = None
        self._number: int | None = None  # of the call at which the code stands, if it stands at one
        self._sleepers: dict[int, asyncio.TimerHandle] = {}
        self._is_over = False
        self._own_stops = 0
        self.answers: dict[int, pm.ExternalSettledResult] = {}
        """Answers the code has not reached yet, by the number of the call."""
        self.stops = 0
        """How often the code stopped."""

    @property
    def is_flying(self) -> bool:
        """Whether the worker has the turn."""
        return self._lease.pilot.is_flying

    def glance(self) -> bool:
        """Stand by for the worker, if that is worth it; whether it gave the turn back."""
        return self._lease.pilot.glance()

    @property
    def is_standing(self) -> bool:
        """Whether the code waits for an answer and for nothing else."""
        return self._stop is not None and not self._is_asleep

    @property
    def _is_asleep(self) -> bool:
        """Whether the code goes on by itself when a sleep is over."""
        return bool(self._sleepers) and (self._number is None or self._number in self._sleepers)

    def feed(self, start: Callable[..., Snapshot], *arguments: Any) -> None:
        """Give the worker the turn; `start` begins the action or resumes a stop."""
        self._stop = self._number = None
        self._clock.run()
        self._lease.pilot.fly(self._landed, start, *arguments)

    def stand_at(self, stop: Stop) -> None:
        """Stand where a restored action stood."""
        if isinstance(stop, pm.FunctionSnapshot):
            self._stand(stop, stop.call_id)
        else:
            self._deliver(stop)

    def answer(self, number: int, settled: pm.ExternalSettledResult) -> None:
        """Take an answer; it is delivered as soon as the code stands at its call."""
        stop = self._stop
        if isinstance(stop, pm.FunctionSnapshot) and number == self._number:
            self.feed(stop.resume, settled)
            return
        self.answers[number] = settled
        if isinstance(stop, pm.FutureSnapshot):
            self._deliver(stop)

    def dump(self) -> tuple[bytes, dict[int, pm.ExternalSettledResult]]:
        """The standing machine as bytes, and the answers to give it; whoever sleeps is awake after a restore."""
        if self._stop is None or self._is_asleep:
            raise RuntimeError("the execution is not waiting")
        awake: dict[int, pm.ExternalSettledResult] = {number: {"return_value": None} for number in self._sleepers}
        return self._stop.dump(), self.answers | awake

    def halt(self) -> None:
        """Tell nothing any more."""
        self._is_over = True
        self._clock.stand()
        for timer in self._sleepers.values():
            timer.cancel()
        self._sleepers.clear()
        self._stop = self._number = None

    def _landed(self, stop: Snapshot, error: BaseException | None) -> None:
        self._lease.is_dead |= isinstance(error, pm.MontyCrashedError)
        if self._is_over:
            return
        self._driver.on_turn()
        try:
            if error is not None:
                raise error
            self._arrive(stop)
        except Exception as e:  # also what comes of a stop nobody expects from a worker
            self._driver.on_failure(e)
        self._driver.on_told()

    def _arrive(self, stop: Snapshot) -> None:
        match stop:
            case pm.FunctionSnapshot():
                self.stops += 1
                if stop.is_os_function:
                    self._system_call(stop)
                else:
                    self._go_on_or_stand(stop, self._driver.on_call(stop))
            case pm.FutureSnapshot():
                self._driver.on_blocked()
                self._deliver(stop)
            case pm.NameLookupSnapshot():
                self.stops += 1
                self._count_own()
                value = self._offer.value_of(stop)
                self.feed(stop.resume if value is None else partial(stop.resume, value=value))
            case pm.MontyComplete():
                self._driver.on_complete(stop.output)

    def _count_own(self) -> None:
        """Such stops take longer than Monty counts: a loop of them could outlive its time many times over."""
        self._own_stops += 1
        if self._own_stops == _MANY:
            self._clock.be_strict()

    def _system_call(self, stop: pm.FunctionSnapshot) -> None:
        if stop.function_name in system.SLEEPS:
            return self._sleep(stop)
        answer = self._repeat.answer(stop) if self._repeat is not None else None
        if answer is None:
            answer = system.answer(stop, self._environ, has_files=self._output is not None)
        if answer is None and self._output is not None:
            answer = self._output.refusal(str(stop.function_name), self._limits)
        if answer is not None:
            self._go_on_or_stand(stop, answer)
        else:
            self._count_own()
            self.feed(stop.resume_auto if self._output is not None else stop.resume_not_handled)

    def _sleep(self, stop: pm.FunctionSnapshot) -> None:
        self._clock.be_strict()
        seconds = float(stop.args[0])
        timer = asyncio.get_running_loop().call_later(seconds if seconds > 0 else 0, self._woken, stop.call_id)
        self._sleepers[stop.call_id] = timer
        self._go_on_or_stand(stop, LATER if stop.function_name == "asyncio.sleep" else None)

    def _woken(self, number: int) -> None:
        del self._sleepers[number]
        self.answer(number, {"return_value": None})

    def _go_on_or_stand(self, stop: pm.FunctionSnapshot, answer: pm.ExternalResult | None) -> None:
        if self._is_over:
            return
        if answer is None:
            self._stand(stop, stop.call_id)
            return
        if answer is not LATER:
            self._count_own()
        self.feed(stop.resume, answer)

    def _deliver(self, stop: pm.FutureSnapshot) -> None:
        """Resume the code with the answers it waits for; without one it stands."""
        ready = {n: self.answers.pop(n) for n in stop.pending_call_ids if n in self.answers}
        if ready:
            self.feed(stop.resume, ready)
        else:
            self._stand(stop, None)

    def _stand(self, stop: Stop, number: int | None) -> None:
        self._stop, self._number = stop, number
        if self._is_asleep:
            self._clock.run()
        else:
            self._clock.stand()
