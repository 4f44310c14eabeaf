"""A thread that does blocking jobs for an event loop, one at a time, and passes the turn as cheaply as it can."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

GLANCE_SECONDS = 0.005
"""How long a loop may stand by for a lone job: most are done long before, and a wake-up through the loop's own pipe
costs more than such a job. A shorter time is dearer: it makes the kernel set a timer of its own."""
LEAST_PATIENCE, MOST_PATIENCE = 16, 1024
"""Jobs that are not stood by for after one that took longer, doubled each time until one is quick again."""


class StandIn(RuntimeError):
    """Stands for its cause, an error that as itself would end more than the job it was raised in."""


class LoopWorker:
    """A daemon thread with one job at a time. Not for two callers at once.

    The thread gets its turn by a byte in a pipe, for a write lets go of the interpreter lock in the right moment: woken
    by a lock, it would first have to wait for the other one. It gives the turn back by a lock.
    """

    def __init__(self, name: str) -> None:
        self._mine, self._turn = os.pipe()
        self._done = threading.Lock()
        self._done.acquire()
        self._job: Callable[[], Any] | None = None
        self._value: Any = None
        self._error: BaseException | None = None
        self._listener: tuple[asyncio.AbstractEventLoop, Callable[[], object]] | None = None
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def start(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Give the thread its turn, with the caller's context variables."""
        self._job = partial(contextvars.copy_context().run, function, *arguments)
        os.write(self._turn, b".")

    def is_done(self, *, within: float = 0.0) -> bool:
        """Whether the job ends by then; the calling thread stands still meanwhile. True once: then take `outcome`."""
        return self._done.acquire(timeout=within) if within else self._done.acquire(blocking=False)

    def when_done(self, callback: Callable[[], object]) -> None:
        """Have it called on the running loop when the job is done; perhaps too early or twice: look with `is_done`."""
        loop = asyncio.get_running_loop()
        self._listener = loop, callback
        if not self._done.locked():  # it ended before it could see that somebody listens
            loop.call_soon(callback)

    async def wait(self) -> None:
        """Until the job is done; then take `outcome`. Cancelling the wait leaves the job alone."""
        loop = asyncio.get_running_loop()
        while not self.is_done():
            told: asyncio.Future[None] = loop.create_future()
            self.when_done(partial(_settle, told))
            await told

    def outcome(self) -> Any:
        """What the function returned, or what it raised; kept no longer."""
        value, error, self._value, self._error = self._value, self._error, None, None
        if error is None:
            return value
        if isinstance(error, StopIteration | GeneratorExit | KeyboardInterrupt):
            raise StandIn(f"{type(error).__name__}: {error}") from error
        raise error

    def dismiss(self) -> None:
        """Let the thread end, after the job it has. Legal twice."""
        self._job = None
        turn, self._turn = self._turn, -1
        if turn >= 0:
            os.close(turn)

    def _serve(self) -> None:
        while os.read(self._mine, 1) and (job := self._job) is not None:
            self._job = None
            try:
                self._value = job()
            except BaseException as e:
                self._error = e
            del job  # an idle thread must not keep a job's arguments alive
            self._done.release()
            self._tell()
        os.close(self._mine)

    def _tell(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            loop, callback = listener
            try:
                loop.call_soon_threadsafe(callback)
            except RuntimeError:
                pass  # the loop was closed meanwhile: nobody waits for the result any more


def _settle(told: asyncio.Future[None]) -> None:
    if not told.done():
        told.set_result(None)


class Patience:
    """Whether the loop should stand by for the next job. Jobs that took too long make it rarer."""

    def __init__(self) -> None:
        self._hope, self._patience = 0, LEAST_PATIENCE

    def is_done_at_a_glance(self, worker: LoopWorker) -> bool:
        """Stand by for the job, if it is worth it; whether it is done. True once, as `is_done`."""
        self._hope += 1
        if self._hope <= 0:
            return worker.is_done()
        if worker.is_done(within=GLANCE_SECONDS):
            self._patience = LEAST_PATIENCE
            return True
        self._hope, self._patience = -self._patience, min(2 * self._patience, MOST_PATIENCE)
        return False
