"""Who drives a run: one at a time. A lock ends with its holder, however that dies; none runs out by time."""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from hatchway.core.errors import JournalError
from hatchway.journal.database import Row
from hatchway.journal.postgres import PostgresDatabase


class Locks(Protocol):
    """The locks of one journal."""

    def take(self, run_id: str) -> bool:
        """Take the lock of a run; False when somebody has it, this process included. Blocks for no time."""
        ...

    def give_back(self, run_id: str) -> None:
        """Let others take it. Legal without it."""
        ...

    def is_free(self, run_id: str) -> bool:
        """Whether nobody has it just now."""
        ...

    def close(self) -> None:
        """Give all of them back."""
        ...


class FileLocks:
    """A file per driven run in a folder beside the journal, held by `flock`."""

    def __init__(self, journal: str) -> None:
        self._folder = Path(journal + ".locks")
        self._held: dict[str, int] = {}
        self._lock = threading.Lock()

    def take(self, run_id: str) -> bool:
        """As `Locks` says."""
        while True:
            fd = self._opened(run_id)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(fd)
                return False
            if _is_same(fd, self._path(run_id)):
                break
            os.close(fd)  # its last holder removed the file between the two lines above: not the lock others see
        with self._lock:
            self._held[run_id] = fd
        return True

    def give_back(self, run_id: str) -> None:
        """As `Locks` says."""
        with self._lock:
            fd = self._held.pop(run_id, None)
        if fd is not None:
            with suppress(OSError):
                self._path(run_id).unlink()
            os.close(fd)

    def is_free(self, run_id: str) -> bool:
        """As `Locks` says."""
        try:
            fd = os.open(self._path(run_id), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return True
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False
        finally:
            os.close(fd)

    def close(self) -> None:
        """As `Locks` says."""
        for run_id in tuple(self._held):
            self.give_back(run_id)

    def _path(self, run_id: str) -> Path:
        return self._folder / run_id

    def _opened(self, run_id: str) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            try:
                return os.open(self._path(run_id), flags, 0o600)
            except FileNotFoundError:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                return os.open(self._path(run_id), flags, 0o600)
        except OSError as e:
            raise JournalError(
                f"a run of the journal cannot be locked: {e}", hint=f"see that {self._folder} can be written"
            ) from e


def _is_same(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except OSError:
        return False


class AdvisoryLocks:
    """PostgreSQL's advisory locks, held by a connection of their own: the server ends them with it."""

    def __init__(self, db: PostgresDatabase) -> None:
        self._db = db
        self._held: set[str] = set()
        self._lock = threading.Lock()

    def take(self, run_id: str) -> bool:
        """As `Locks` says."""
        with self._lock:
            if run_id in self._held:  # the server would count it as taken twice by the same holder
                return False
            taken = self._try(run_id)
            if taken:
                self._held.add(run_id)
            return taken

    def give_back(self, run_id: str) -> None:
        """As `Locks` says."""
        with self._lock:
            if run_id in self._held:
                self._held.discard(run_id)
                self._ask("SELECT pg_advisory_unlock(?)", (_number(run_id),))

    def is_free(self, run_id: str) -> bool:
        """As `Locks` says."""
        high, low = _number(run_id) >> 32 & 0xFFFFFFFF, _number(run_id) & 0xFFFFFFFF
        asked = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = ? AND objid = ? AND objsubid = 1"
        with self._lock:
            return run_id not in self._held and not self._ask(asked, (high, low))

    def close(self) -> None:
        """As `Locks` says."""
        with self._lock:
            self._held.clear()
            self._db.close()

    def _try(self, run_id: str) -> bool:
        return bool(self._ask("SELECT pg_try_advisory_lock(?)", (_number(run_id),))[0][0])

    def _ask(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        """Ask the server; when it was started anew, all locks are asked for anew. One that is lost is not noticed
        here: the epoch keeps its run from writing."""
        known = self._db.connections
        rows = self._db.query(sql, parameters)
        if self._db.connections != known:
            for run_id in self._held:
                self._try(run_id)
        return rows


def _number(run_id: str) -> int:
    return int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:8], "big", signed=True)
