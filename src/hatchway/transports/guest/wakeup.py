"""Waiting for something that a callback of the event loop brings, without the extra turn a Future takes.

A Future resumes its task one turn of the loop after it was set; for a tool call that turn is a fifth of the whole
cost. A `Wakeup` resumes it inside the callback.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context
from typing import Any

Callback = Callable[["Wakeup"], Any]


class Wakeup:
    """Awaited by one task at a time, again and again. Speaks the protocol by which a task waits for a future.

    It carries nothing: what has come is found elsewhere, and a `wake` while nobody waits is forgotten.
    """

    __slots__ = ("_asyncio_future_blocking", "_callback", "_cancelled", "_context", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._asyncio_future_blocking = False
        self._callback: Callback | None = None
        self._context: Context | None = None
        self._cancelled: asyncio.CancelledError | None = None

    def __await__(self) -> Generator[Wakeup]:
        self._asyncio_future_blocking = True
        try:
            yield self
        finally:
            self._cancelled = None

    @property
    def is_awaited(self) -> bool:
        """Whether a task waits."""
        return self._callback is not None

    def wake(self) -> None:
        """Resume the task now; one turn later when another task is running, which must not be interrupted."""
        callback, self._callback = self._callback, None
        if callback is None:
            return
        if self._context is not None and asyncio.current_task(self._loop) is None:
            self._context.run(callback, self)
        else:
            self._loop.call_soon(callback, self, context=self._context)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The loop whose task may wait."""
        return self._loop

    def add_done_callback(self, callback: Callback, *, context: Context | None = None) -> None:
        """The task's way of waiting."""
        self._callback, self._context = callback, context

    def remove_done_callback(self, callback: Callback) -> int:
        """The task's way of not waiting any more."""
        was_there = self._callback is not None
        self._callback = None
        return int(was_there)

    def cancel(self, msg: Any = None) -> bool:
        """Called when the waiting task is cancelled."""
        callback, self._callback = self._callback, None
        if callback is None:
            return False
        self._cancelled = asyncio.CancelledError() if msg is None else asyncio.CancelledError(msg)  # anyio reads it
        self._loop.call_soon(callback, self, context=self._context)
        return True

    def cancelled(self) -> bool:
        """Whether the waiting task was cancelled."""
        return self._cancelled is not None

    def done(self) -> bool:
        """Whether nobody waits."""
        return self._callback is None

    def result(self) -> None:
        """Nothing, or the cancellation."""
        if self._cancelled is not None:
            raise self._cancelled

    def exception(self) -> None:
        """As `result`."""
        self.result()
