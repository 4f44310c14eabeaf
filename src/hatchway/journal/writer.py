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
from hatchway.journal.database import Database

GLANCE_SECONDS = 0.0003
"""How long the loop stands by for a lone commit of the thread: most are done by then."""
SOON_SECONDS, LAZY_SECONDS = 0.001, 0.02
"""How long an outcome, and output, may wait for company: the next call's intent is stored in the same commit."""
TIDY_COMMITS = 300

Change = Callable[[Database], None]
"""Made within a transaction. Its own errors concern itself alone."""


class Line:
    """Changes that build on one another: once one of them was not stored, none after it is."""

    __slots__ = ("error",)

    def __init__(self) -> None:
        self.error: Exception | None = None


class _Job:
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
        self.error = error
        if self.line is not None and self.line.error is None:
            self.line.error = error

    def deliver(self) -> None:
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
        loop = asyncio.get_running_loop()
        with self.handing_over:
            if not self.is_done:
                self.loop, self.future = loop, loop.create_future()
        if self.future is not None:
            await self.future


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
        self._pending: deque[_Job] = deque()
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
        self._pending.append(_Job(change, line))
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
        job = _Job(change, line)
        self._pending.append(job)
        if not self._commit_here():
            self._wake()
            self._waiting += 1
            try:
                if self._waiting > 1 or not job.glance(GLANCE_SECONDS):
                    await job.wait()
            finally:
                self._waiting -= 1
        _check(job)

    def write(self, change: Change, line: Line | None = None) -> None:
        """As `written`, for a caller without an event loop."""
        job = _Job(change, line)
        self._pending.append(job)
        self._wake()
        job.glance(-1)
        _check(job)

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
        jobs: list[_Job] = []
        try:
            if self._connect_here is None:
                return False  # closed meanwhile
            self._here = self._here or self._connect_here()
            jobs = self._taken()
            if any(job.is_cut_off() for job in jobs):
                raise _Spoilt(JournalError("something of a line was not stored"))
            _together(self._here, jobs)
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

    def _taken(self) -> list[_Job]:
        return [self._pending.popleft() for _ in range(len(self._pending))]

    def _committed(self, db: Database | None, jobs: Sequence[_Job]) -> Database | None:
        """Commit with patience, each job told how it went; the connection, if it can be used again."""
        try:
            db = db or self._connect()
        except Exception as e:
            for job in jobs:
                job.fail(e)
            return None
        if _commit(db, jobs):
            return db
        db.close()
        return None


def _commit(db: Database, jobs: Sequence[_Job]) -> bool:
    """Commit together, or each on its own when one of them spoils it for all; False when the database itself failed.

    Nobody waits for a database twice: when it cannot be had, all of them fail at once.
    """
    jobs = [job for job in jobs if not job.is_cut_off()]
    try:
        _together(db, jobs)
    except _Spoilt as spoilt:
        if len(jobs) == 1:
            jobs[0].fail(spoilt.cause)
            return True
        for at, job in enumerate(jobs):
            if not _commit(db, [job]):
                for other in jobs[at + 1 :]:
                    other.fail(job.error or spoilt.cause)
                return False
    except Exception as e:
        for job in jobs:
            job.fail(e)
        return False
    return True


class _Spoilt(Exception):
    """A change failed; nothing of its transaction is stored."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _together(db: Database, jobs: Sequence[_Job]) -> None:
    db.begin()
    try:
        for job in jobs:
            try:
                job.change(db)
            except Exception as e:
                raise _Spoilt(e) from e
        db.commit()
    except BaseException:
        with suppress(Exception):  # the connection is gone, and its transaction with it
            db.rollback()
        raise


def _check(job: _Job) -> None:
    match job.error:
        case None:
            return
        case JournalError() as e:  # many may be told of one failure, each by an error of its own
            raise JournalError(e.message, hint=e.hint) from e
        case HatchwayError() as e:
            raise e
        case e:
            raise JournalError(f"the journal: {e}") from e
