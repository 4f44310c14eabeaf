"""The writer: one thread that commits what is handed to it, together what came together.

The event loop never waits for a disk. Whoever needs to know that something is stored awaits it; the rest is handed in
and stored in the order in which it came.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from time import monotonic

from hatchway.core.errors import HatchwayError, JournalError
from hatchway.journal.database import Database

GLANCE_SECONDS = 0.0003
"""How long the loop stands by for a lone commit: most are done by then, and a wake-up through the loop costs more."""
LAZY_SECONDS = 0.02
"""How long output may wait for company."""
MOST_AT_ONCE = 500

Change = Callable[[Database], None]
"""Made in the writer's thread, within a transaction. Its own errors concern itself alone."""


class _Job:
    __slots__ = ("change", "done", "error", "future", "handing_over", "is_done", "is_lazy", "loop")

    def __init__(self, change: Change | None, *, is_lazy: bool = False) -> None:
        self.change = change
        self.is_lazy = is_lazy
        self.error: Exception | None = None
        self.is_done = False
        self.done = threading.Lock()
        self.done.acquire()
        self.handing_over = threading.Lock()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.future: asyncio.Future[None] | None = None

    def deliver(self) -> None:
        with self.handing_over:
            self.is_done = True
            future, loop = self.future, self.loop
        self.done.release()
        if future is not None and loop is not None:
            try:
                loop.call_soon_threadsafe(lambda: future.done() or future.set_result(None))
            except RuntimeError:
                pass  # the loop was closed: nobody waits any more

    async def wait(self) -> None:
        loop = asyncio.get_running_loop()
        with self.handing_over:
            if not self.is_done:
                self.loop, self.future = loop, loop.create_future()
        if self.future is not None:
            await self.future


class Writer:
    """Commits changes in the order in which they came.

    Args:
        connect: Makes the connection; called in the writer's thread when it first has something to do.
    """

    def __init__(self, connect: Callable[[], Database]) -> None:
        self._connect = connect
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._waiting = 0
        self._broken: Exception | None = None

    def put(self, change: Change, *, is_lazy: bool = False) -> None:
        """Hand in a change without waiting. That it failed is told to whoever next waits.

        Args:
            change: What to do.
            is_lazy: It may be stored a moment later, together with others.
        """
        self._hand_in(_Job(change, is_lazy=is_lazy))

    async def written(self, change: Change) -> None:
        """Make a change; it is stored, with all that came before, when this returns.

        Raises:
            HatchwayError: What the change itself raised.
            JournalError: It cannot be stored.
        """
        job = _Job(change)
        self._hand_in(job)
        self._waiting += 1
        try:
            if self._waiting > 1 or not job.done.acquire(timeout=GLANCE_SECONDS):
                await job.wait()
        finally:
            self._waiting -= 1
        self._check(job)

    def write(self, change: Change) -> None:
        """As `written`, for a caller without an event loop."""
        job = _Job(change)
        self._hand_in(job)
        job.done.acquire()
        self._check(job)

    def close(self) -> None:
        """Store what is left and end. Legal twice."""
        with self._starting:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            thread.join()

    def _check(self, job: _Job) -> None:
        error = job.error or self._broken
        if error is not None:
            raise error if isinstance(error, HatchwayError) else JournalError(f"the journal: {error}") from error

    def _hand_in(self, job: _Job) -> None:
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._serve, name="hatchway journal", daemon=True)
                    self._thread.start()
        self._queue.put(job)

    def _serve(self) -> None:
        try:
            db = self._connect()
        except Exception as e:
            self._broken = e
            self._refuse_all()
            return
        try:
            while (jobs := self._collected()) is not None:
                self._commit(db, jobs)
                for job in jobs:
                    job.deliver()
                if self._queue.empty():
                    db.tidy()
        finally:
            db.close()

    def _refuse_all(self) -> None:
        while (job := self._queue.get()) is not None:
            job.error = self._broken
            job.deliver()

    def _collected(self) -> list[_Job] | None:
        """What is there to do, at least one job; None at the end."""
        first = self._queue.get()
        if first is None:
            return None
        jobs, until = [first], monotonic() + LAZY_SECONDS
        while len(jobs) < MOST_AT_ONCE:
            try:
                left = until - monotonic() if jobs[-1].is_lazy else 0.0
                job = self._queue.get(timeout=left) if left > 0 else self._queue.get_nowait()
            except Empty:
                break
            if job is None:
                self._queue.put(None)
                break
            jobs.append(job)
        return jobs

    def _commit(self, db: Database, jobs: Sequence[_Job]) -> None:
        try:
            self._together(db, jobs)
        except Exception:
            for job in jobs:  # one of them spoils it for all: each on its own
                try:
                    self._together(db, [job])
                except Exception as e:
                    job.error = e
                    if not isinstance(e, HatchwayError):
                        self._broken = e

    def _together(self, db: Database, jobs: Sequence[_Job]) -> None:
        try:
            db.begin()
            for job in jobs:
                if job.change is not None:
                    job.change(db)
            db.commit()
        except BaseException:
            try:
                db.rollback()
            except Exception:
                pass  # the connection is gone, and its transaction with it
            raise
