"""What the guest has said and the host has not looked at yet, in order and bounded."""

from __future__ import annotations

import asyncio

from hatchway.core.errors import TransportError
from hatchway.core.transport import Completed, Failed, Received
from hatchway.transports.http.head import Refused

MAX_MESSAGES = 4096
"""Messages waiting at one time; a guest that sends more is told to come back."""
MAX_BYTES = 256 * 1024 * 1024
"""Bytes of theirs on the wire; one message always fits."""

Problem = TransportError | EOFError


class Inbox:
    """A queue that ends: in the end of the code, or in an error that is raised from then on."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[tuple[Received | Problem, int]] = asyncio.Queue()
        self._bytes = 0
        self._end: Problem | None = None

    def make_room(self, size: int) -> None:
        """Raises Refused when the host has to catch up, or the execution is over."""
        if self._end is not None:
            raise Refused(410, "this execution has ended")
        if self._queue.qsize() >= MAX_MESSAGES or (self._bytes and self._bytes + size > MAX_BYTES):
            raise Refused(503, "the host has not caught up: try again later")

    def put(self, item: Received, size: int) -> None:
        """One more thing the guest said, of `size` bytes."""
        self._bytes += size
        self._queue.put_nowait((item, size))
        if isinstance(item, Completed | Failed):
            self._end = EOFError("the code has ended")

    def fail(self, problem: Problem) -> None:
        """End in an error; what came before is still given, and a first error stays the last."""
        if not isinstance(self._end, TransportError):
            self._end = problem
            self._queue.put_nowait((problem, 0))

    async def get(self) -> Received:
        """The next thing. Raises what it ended in once there is no more."""
        if self._queue.empty() and self._end is not None:
            raise self._end.with_traceback(None)
        item, size = await self._queue.get()
        self._bytes -= size
        if isinstance(item, Exception):
            raise item.with_traceback(None)
        return item
