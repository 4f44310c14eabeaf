"""A pilot: the thread in which one worker is flown, so that the event loop never waits for Monty.

Monty's own async interface wakes the loop through two threads for each stop, which costs more than the stop itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from hatchway.core.loop_worker import LoopWorker, Patience

Landed = Callable[[Any, BaseException | None], object]
"""Told on the loop what a flight gave, or what it raised."""


class Pilot:
    """Flies one after another: blocking calls into Monty, whose ends are told on the loop they were started from.

    The thread must live as long as its workers: the kernel kills a worker with the thread that started it.
    """

    _flying: ClassVar[int] = 0  # pilots in the air; the loop stands by for a flight only when it is the only one

    def __init__(self) -> None:
        self._worker = LoopWorker("hatchway monty")
        self._patience = Patience()
        self._landed: Landed | None = None
        self._waiting: deque[tuple[Landed, Callable[[], Any]]] = deque()
        self._is_dismissed = False

    @property
    def is_flying(self) -> bool:
        """Whether a flight is in the air."""
        return self._landed is not None

    def fly(self, landed: Landed, function: Callable[..., Any], *arguments: Any) -> None:
        """Call the function in the thread, after the flights before it; `landed` is told on the running loop."""
        self._waiting.append((landed, partial(function, *arguments)))
        if self._landed is None:
            self._take_off()

    async def flown(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What the function returns. Cancelling the wait leaves the flight alone."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.fly(partial(_settle, done), function, *arguments)
        self.glance()
        return await done

    def blocking(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What the function returns; for a thread without a loop."""
        self._worker.start(function, *arguments)
        while not self._worker.is_done(within=1.0):
            pass
        return self._worker.outcome()

    def glance(self) -> bool:
        """Stand by for the flight in the air, if that is worth it; whether it landed."""
        if self._landed is None or Pilot._flying > 1 or not self._patience.is_done_at_a_glance(self._worker):
            return False
        self._arrive()
        return True

    def dismiss(self) -> None:
        """Let the thread end, after the flight in the air; others are told that there is no pilot. Legal twice."""
        self._is_dismissed = True
        self._worker.dismiss()

    def _take_off(self) -> None:
        landed, function = self._waiting.popleft()
        if self._is_dismissed:
            landed(None, RuntimeError("the pool of Monty workers was closed"))
            return
        self._landed = landed
        Pilot._flying += 1
        self._worker.start(function)
        asyncio.get_running_loop().call_soon(self._watch)  # a glance may come first, and saves the wake-up

    def _watch(self) -> None:
        if self._landed is None:
            return
        if self._worker.is_done():
            self._arrive()
        else:
            self._worker.when_done(self._watch)

    def _arrive(self) -> None:
        landed, self._landed = self._landed, None
        assert landed is not None, "somebody asked for this flight"
        Pilot._flying -= 1
        try:
            value, error = self._worker.outcome(), None
        except BaseException as e:
            value, error = None, e
        if self._waiting:
            self._take_off()
        landed(value, error)


def _settle(done: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(value)
    else:
        done.set_exception(error)
