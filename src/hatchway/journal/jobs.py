"""Changes on their way into the database: what each builds on, and who waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from hatchway.core.errors import HatchwayError, JournalError
from hatchway.journal.database import Database

Change = Callable[[Database], None]
"""Made within a transaction. Its own errors concern itself alone."""


class Line:
    """Changes that build on one another: once one of them was not stored, none after it is."""

    __slots__ = ("error",)

    def __init__(self) -> None:
        self.error: Exception | None = None


class Job:
    """A change on its way into the database, and who waits for it.

    Args:
        change: What to do.
        line: What it builds on.
    """

    __slots__ = ("change", "done", "error", "future", "handing_over", "is_done", "line", "loop")

    def __init__(self, change: Change, line: Line | None) -> None:
        self.change, self.line = change, line
        self.error: Exception | None = None
        self.is_done = False
        self.done: threading.Lock | None = None
        self.handing_over = threading.Lock()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.future: asyncio.Future[None] | None = None

    def is_cut_off(self) -> bool:
        """Whether something it builds on was not stored; then it failed too."""
        if self.line is not None and self.line.error is not None:
            self.error = self.line.error
        return self.error is not None

    def fail(self, error: Exception) -> None:
        """It was not stored, nor will be what builds on it."""
        self.error = error
        if self.line is not None and self.line.error is None:
            self.line.error = error

    def deliver(self) -> None:
        """Tell whoever waits that it is over, well or not."""
        with self.handing_over:
            self.is_done = True
            future, loop, done = self.future, self.loop, self.done
        if done is not None:
            done.release()
        if future is not None and loop is not None:
            try:
                loop.call_soon_threadsafe(lambda: future.done() or future.set_result(None))
            except RuntimeError:
                pass  # the loop was closed: nobody waits any more

    def glance(self, seconds: float) -> bool:
        """Wait so long at most, blocking; whether it is done."""
        with self.handing_over:
            if self.is_done:
                return True
            self.done = threading.Lock()
            self.done.acquire()
        return self.done.acquire(timeout=seconds)

    async def wait(self) -> None:
        """Until it is done."""
        loop = asyncio.get_running_loop()
        with self.handing_over:
            if not self.is_done:
                self.loop, self.future = loop, loop.create_future()
        if self.future is not None:
            await self.future

    def check(self) -> None:
        """Nothing, once it is stored.

        Raises:
            HatchwayError: What the change itself raised.
            JournalError: It was not stored, or something before it in its line was not.
        """
        match self.error:
            case None:
                return
            case JournalError() as e:  # many may be told of one failure, each by an error of its own
                raise JournalError(e.message, hint=e.hint) from e
            case HatchwayError() as e:
                raise e
            case e:
                raise JournalError(f"the journal: {e}") from e
