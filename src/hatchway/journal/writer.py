"""The writer: commits what is handed in, in order, together what came together.

Where a commit takes some tens of microseconds and nobody else writes, it is made on the spot: passing it to a thread
and waiting for that costs more. Everything that may take longer (another process writes, an fsync, a server) is made by
a thread, so that the event loop never waits for a disk.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from hatchway.core.errors import HatchwayError, JournalError
from hatchway.journal.committing import Spoilt, commit, together
from hatchway.journal.database import Database
from hatchway.journal.jobs import Change, Job, Line

GLANCE_SECONDS = 0.0003
"""How long the loop stands by for a lone commit of the thread: most are done by then."""
SOON_SECONDS, LAZY_SECONDS = 0.001, 0.02
"""How long an outcome, and output, may wait for company: the next call's intent is stored in the same commit."""
TIDY_COMMITS = 300


class Writer:
    """Commits changes in the order in which they came.

    Args:
        connect: Makes the thread's connection, when it first has something to do.
        connect_here: Makes a connection whose commits take no time worth mentioning, and which gives up at once when
            another process writes; None where there is no such thing.
    """

    def __init__(self, connect: Callable[[], Database], connect_here: Callable[[], Database] | None = None) -> None:
        self._connect, self._connect_here = connect, connect_here
        self._here: Database | None = None
        self._pending: deque[Job] = deque()
        self._committing = threading.Lock()
        self._wanted = threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._waiting = self._commits = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    def put(self, change: Change, line: Line | None = None, *, is_lazy: bool = False) -> None:
        """Hand in a change without waiting. That it failed is told to whoever next waits for one of its line.

        Args:
            change: What to do.
            line: What it builds on.
            is_lazy: It may be stored some moments later, together with others.
        """
        self._pending.append(Job(change, line))
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._wake()
            return
        if self._timer is None or self._timer_loop is not loop:
            self._timer_loop = loop
            self._timer = loop.call_later(LAZY_SECONDS if is_lazy else SOON_SECONDS, self._flush)

    async def written(self, change: Change, line: Line | None = None) -> None:
        """Make a change; it is stored, with all of its line that came before, when this returns.

        Raises:
            HatchwayError: What the change itself raised.
            JournalError: It cannot be stored, or something before it in its line was not.
        """
        job = Job(change, line)
        self._pending.append(job)
        if not self._commit_here():
            self._wake()
            self._waiting += 1
            try:
                if self._waiting > 1 or not job.glance(GLANCE_SECONDS):
                    await job.wait()
            finally:
                self._waiting -= 1
        job.check()

    def write(self, change: Change, line: Line | None = None) -> None:
        """As `written`, for a caller without an event loop."""
        job = Job(change, line)
        self._pending.append(job)
        self._wake()
        job.glance(-1)
        job.check()

    def close(self) -> None:
        """Store what is left and end. Legal twice."""
        if self._pending:
            with suppress(HatchwayError):  # whoever waits for what is pending is told
                self.write(lambda db: None)
        self._is_closed = True
        with self._starting:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._wanted.release()
            thread.join()
        with self._committing:  # the loop may be committing just now, and a connection must not be closed under it
            here, self._here, self._connect_here = self._here, None, None
        if here is not None:
            here.close()

    def _flush(self) -> None:
        self._timer = None
        if self._pending and not self._commit_here():
            self._wake()

    def _commit_here(self) -> bool:
        """Commit on the spot; False when that might take longer, and then nothing was done."""
        if self._connect_here is None or not self._committing.acquire(blocking=False):
            return False
        jobs: list[Job] = []
        try:
            if self._connect_here is None:
                return False  # closed meanwhile
            self._here = self._here or self._connect_here()
            jobs = self._taken()
            if any(job.is_cut_off() for job in jobs):
                raise Spoilt(JournalError("something of a line was not stored"))
            together(self._here, jobs)
        except Exception:
            self._pending.extendleft(reversed(jobs))  # the thread tries again, with patience, and tells
            return False
        finally:
            self._committing.release()
        for job in jobs:
            job.deliver()
        self._commits += 1
        if self._commits % TIDY_COMMITS == 0:
            self._wake()
        return True

    def _wake(self) -> None:
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    self._is_closed = False
                    self._thread = threading.Thread(target=self._serve, name="hatchway journal", daemon=True)
                    self._thread.start()
        self._wanted.release()

    def _serve(self) -> None:
        db: Database | None = None
        while self._wanted.acquire():
            if self._is_closed and not self._pending:
                break
            with self._committing:
                jobs = self._taken()
                db = self._committed(db, jobs)
            for job in jobs:
                job.deliver()
            if db is not None and not self._pending:
                db.tidy()
        if db is not None:
            db.close()

    def _taken(self) -> list[Job]:
        return [self._pending.popleft() for _ in range(len(self._pending))]

    def _committed(self, db: Database | None, jobs: Sequence[Job]) -> Database | None:
        """Commit with patience, each job told how it went; the connection, if it can be used again."""
        try:
            db = db or self._connect()
        except Exception as e:
            for job in jobs:
                job.fail(e)
            return None
        if commit(db, jobs):
            return db
        db.close()
        return None
