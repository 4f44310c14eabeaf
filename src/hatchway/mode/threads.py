"""Threads for blocking tools, so that the event loop never waits for one."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

GLANCE_SECONDS = 0.005
"""How long the loop stands by for a lone job at most: most tools are done long before, and a wake-up through the loop's
own pipe costs more than the tool itself. A shorter time is dearer: it makes the kernel set a timer of its own."""
LEAST_PATIENCE, MOST_PATIENCE = 16, 1024
"""Jobs that are not stood by for after one that took longer, doubled each time until one is quick again."""


class _Worker:
    """A thread that does one job at a time for the loop.

    It gets its turn by a byte in a pipe, for a write lets go of the interpreter lock in the right moment: woken by a
    lock, the thread would wait for the other one first. It gives the turn back by a lock.
    """

    def __init__(self) -> None:
        self._mine, self._turn = os.pipe()
        self._done = threading.Lock()
        self._done.acquire()
        self._function: Callable[[], Any] | None = None
        self._value: Any = None
        self._error: BaseException | None = None
        self._waiting: asyncio.Future[None] | None = None
        threading.Thread(target=self._serve, name="hatchway tool", daemon=True).start()

    def start(self, function: Callable[[], Any]) -> None:
        """Give the thread its turn, with the caller's context variables."""
        self._function = partial(contextvars.copy_context().run, function)
        os.write(self._turn, b".")

    def is_done_within(self, seconds: float) -> bool:
        """Whether the job ends by then; the calling thread stands still meanwhile."""
        return self._done.acquire(timeout=seconds)

    async def wait(self) -> None:
        """Until the job ends. Cancelling it means that nobody waits for this worker any more."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                waiting = self._waiting = loop.create_future()
                if self._done.acquire(blocking=False):  # it may have ended before it could see that somebody waits
                    return
                await waiting  # woken too early by the end of the job before: look again
        finally:
            self._waiting = None

    def outcome(self) -> Any:
        """What the function returned, or what it raised; kept no longer."""
        value, error, self._value, self._error = self._value, self._error, None, None
        if error is None:
            return value
        if isinstance(error, StopIteration):  # it must not leave a coroutine as itself
            raise RuntimeError(f"StopIteration: {error}")
        raise error

    def dismiss(self) -> None:
        """Let the thread end, after the job it has."""
        self._function = None
        turn, self._turn = self._turn, -1
        if turn >= 0:
            os.close(turn)

    def _serve(self) -> None:
        while os.read(self._mine, 1) and (function := self._function) is not None:
            self._function = None
            try:
                self._value = function()
            except BaseException as e:
                self._error = e
            del function  # an idle thread must not keep a tool's arguments alive
            self._done.release()
            if (waiting := self._waiting) is not None:
                _tell(waiting)
        os.close(self._mine)


def _tell(waiting: asyncio.Future[None]) -> None:
    try:
        waiting.get_loop().call_soon_threadsafe(lambda: None if waiting.done() else waiting.set_result(None))
    except RuntimeError:
        pass  # the loop was closed while the tool ran: nobody waits for the result any more


class ToolThreads:
    """Daemon threads, reused newest first, grown on demand.

    Own code instead of a pool from a library: a tool that hangs must not keep the interpreter from exiting, and the
    way there and back has to cost tens of microseconds.
    """

    def __init__(self) -> None:
        self._idle: list[_Worker] = []
        self._busy = 0
        self._hope, self._patience = 0, LEAST_PATIENCE
        self._closed = False

    async def run(self, function: Callable[[], T]) -> T:
        """The function's result, computed in a thread with the caller's context variables.

        Cancelling the wait abandons the thread: it ends by itself, and its result is dropped.
        """
        worker = self._idle.pop() if self._idle else _Worker()
        worker.start(function)
        self._busy += 1
        try:
            if not self._is_done_at_a_glance(worker):
                await worker.wait()
        except BaseException:
            worker.dismiss()
            raise
        finally:
            self._busy -= 1
        if self._closed:
            worker.dismiss()
        else:
            self._idle.append(worker)
        return worker.outcome()

    def _is_done_at_a_glance(self, worker: _Worker) -> bool:
        self._hope += 1
        if self._hope <= 0 or self._busy > 1:
            return False
        if worker.is_done_within(GLANCE_SECONDS):
            self._patience = LEAST_PATIENCE
            return True
        self._hope, self._patience = -self._patience, min(2 * self._patience, MOST_PATIENCE)
        return False

    def close(self) -> None:
        """Let idle threads end; busy ones end after their job."""
        self._closed = True
        idle, self._idle = self._idle, []
        for worker in idle:
            worker.dismiss()
