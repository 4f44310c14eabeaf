"""Threads for blocking tools, so that the event loop never waits for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hatchway.core.loop_worker import LoopWorker, Patience

T = TypeVar("T")


class ToolThreads:
    """Daemon threads, reused newest first, grown on demand.

    Own code instead of a pool from a library: a tool that hangs must not keep the interpreter from exiting, and the
    way there and back has to cost tens of microseconds.
    """

    def __init__(self) -> None:
        self._idle: list[LoopWorker] = []
        self._busy = 0
        self._patience = Patience()
        self._closed = False

    async def run(self, function: Callable[[], T]) -> T:
        """The function's result, computed in a thread with the caller's context variables.

        Cancelling the wait abandons the thread: it ends by itself, and its result is dropped.
        """
        worker = self._idle.pop() if self._idle else LoopWorker("hatchway tool")
        worker.start(function)
        self._busy += 1
        try:
            if self._busy > 1 or not self._patience.is_done_at_a_glance(worker):
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

    def close(self) -> None:
        """Let idle threads end; busy ones end after their job."""
        self._closed = True
        idle, self._idle = self._idle, []
        for worker in idle:
            worker.dismiss()
