"""Threads for blocking tools, so that the event loop never waits for one."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
_Job = tuple[Callable[[], Any], "asyncio.Future[Any]", asyncio.AbstractEventLoop]


class ToolThreads:
    """Daemon threads, reused newest first, grown on demand.

    Own code instead of a pool from a library: a tool that hangs must not keep the interpreter from exiting, and the
    way there and back has to cost tens of microseconds.
    """

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[_Job | None]] = []
        self._lock = threading.Lock()
        self._closed = False

    async def run(self, function: Callable[[], T]) -> T:
        """The function's result, computed in a thread with the caller's context variables.

        Cancelling the wait abandons the thread: it ends by itself, and its result is dropped.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()
        self._worker().put((lambda: context.run(function), future, loop))
        return await future

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
            function, future, loop = job
            try:
                outcome, error = function(), None
            except BaseException as e:
                outcome, error = None, e
            del job, function  # an idle thread must not keep a tool's arguments alive
            with self._lock:
                if not self._closed:
                    self._idle.append(queue)
            _deliver(loop, future, outcome, error)
            if self._closed:
                return


def _deliver(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], outcome: Any, error: BaseException | None
) -> None:
    try:
        loop.call_soon_threadsafe(_settle, future, outcome, error)
    except RuntimeError:
        return  # the loop was closed while the tool ran: nobody waits for the result any more


def _settle(future: asyncio.Future[Any], outcome: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(outcome)
    elif isinstance(error, StopIteration):
        future.set_exception(RuntimeError(f"StopIteration: {error}"))  # a future refuses a bare StopIteration
    else:
        future.set_exception(error)
