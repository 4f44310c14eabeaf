"""Waiting for a flight that is somebody else's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context
from typing import Any

Wake = Callable[[asyncio.Future[Any]], object]


class Landing:
    """Await it to wait for a future; cancelling the wait leaves the future alone.

    It is what asyncio calls future-like, and lets the future wake the waiting task itself. `asyncio.shield` would put a
    second future between the two, and with it one more turn of the event loop into every call of a tool.

    Args:
        flight: What is waited for. Its result is for others to take.
    """

    def __init__(self, flight: asyncio.Future[Any]) -> None:
        self._flight = flight
        self._asyncio_future_blocking = False
        self._wake: Wake | None = None
        self._context: Context | None = None

    def __await__(self) -> Generator[Any, None, None]:
        if self._flight.done():
            yield  # landed, but its callbacks have not run: let the loop turn, or whoever asks in a loop spins
        else:
            self._asyncio_future_blocking = True
            try:
                yield self
            except asyncio.CancelledError:
                raise
            except Exception:
                pass  # the flight failed, and whoever started it knows

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """As of a future."""
        return self._flight.get_loop()

    def add_done_callback(self, wake: Wake, *, context: Context | None = None) -> None:
        """As of a future; a task calls it once."""
        self._wake, self._context = wake, context
        self._flight.add_done_callback(wake, context=context)

    def cancel(self, msg: object = None) -> bool:
        """Wake the task as cancelled, unless it is about to be woken anyway."""
        if self._flight.done() or self._wake is None:
            return False
        self._flight.remove_done_callback(self._wake)
        loop = self._flight.get_loop()
        given_up = loop.create_future()
        given_up.cancel(msg)
        loop.call_soon(self._wake, given_up, context=self._context)
        return True
