"""Threads for blocking tools, so that the event loop never waits for one."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

GLANCE_SECONDS = 0.0002
"""How long the loop stands by for a lone job: most tools are done by then, and a wake-up through the loop's own pipe
costs more than the tool itself."""


class _Job:
    """A function on its way through a thread, and whoever waits for it."""

    def __init__(self, function: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.value: Any = None
        self.error: BaseException | None = None
        self.future: asyncio.Future[Any] | None = None
        self.done = threading.Lock()
        self.done.acquire()
        self._function: Callable[[], Any] | None = function
        self._context = contextvars.copy_context()
        self._handing_over = threading.Lock()
        self._is_done = False

    def compute(self) -> None:
        """In the thread: call the function."""
        function, self._function = self._function, None  # an idle thread must not keep a tool's arguments alive
        assert function is not None
        try:
            self.value = self._context.run(function)
        except BaseException as e:
            self.error = e

    def deliver(self) -> None:
        """In the thread: wake whoever waits."""
        with self._handing_over:
            self._is_done = True
            waiting = self.future
        self.done.release()
        if waiting is not None:
            try:
                self.loop.call_soon_threadsafe(self._settle)
            except RuntimeError:
                pass  # the loop was closed while the tool ran: nobody waits for the result any more

    def wait(self) -> asyncio.Future[Any] | None:
        """On the loop: a future for the outcome, or None when it is there already."""
        with self._handing_over:
            if not self._is_done:
                self.future = self.loop.create_future()
            return self.future

    def outcome(self) -> Any:
        """What the function returned, or what it raised."""
        if self.error is None:
            return self.value
        if isinstance(self.error, StopIteration):  # it must not leave a coroutine as itself
            raise RuntimeError(f"StopIteration: {self.error}")
        raise self.error

    def _settle(self) -> None:
        if self.future is not None and not self.future.done():
            self.future.set_result(None)


class ToolThreads:
    """Daemon threads, reused newest first, grown on demand.

    Own code instead of a pool from a library: a tool that hangs must not keep the interpreter from exiting, and the
    way there and back has to cost tens of microseconds.
    """

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[_Job | None]] = []
        self._lock = threading.Lock()
        self._busy = 0
        self._closed = False

    async def run(self, function: Callable[[], T]) -> T:
        """The function's result, computed in a thread with the caller's context variables.

        Cancelling the wait abandons the thread: it ends by itself, and its result is dropped.
        """
        job = _Job(function, asyncio.get_running_loop())
        self._worker().put(job)
        self._busy += 1
        try:
            is_there = self._busy == 1 and job.done.acquire(timeout=GLANCE_SECONDS)
            if not is_there and (future := job.wait()) is not None:
                await future
            return job.outcome()
        finally:
            self._busy -= 1

    def close(self) -> None:
        """Let idle threads end; busy ones end after their job."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for queue in idle:
            queue.put(None)

    def _worker(self) -> SimpleQueue[_Job | None]:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        queue: SimpleQueue[_Job | None] = SimpleQueue()
        threading.Thread(target=self._serve, args=(queue,), name="hatchway tool", daemon=True).start()
        return queue

    def _serve(self, queue: SimpleQueue[_Job | None]) -> None:
        while (job := queue.get()) is not None:
            job.compute()
            with self._lock:
                is_last = self._closed
                if not is_last:
                    self._idle.append(queue)  # before it is told: the next call finds this thread, not a new one
            job.deliver()
            del job
            if is_last:
                return
