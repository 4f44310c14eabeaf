"""The journal in a SQLite file, in WAL mode: written by one at a time, read by anybody meanwhile."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from hatchway.core.errors import JournalError
from hatchway.journal.database import Row

Durability = Literal["normal", "full"]
"""`normal` survives the death of the process, `full` also a power cut, for an fsync per commit."""
BUSY_SECONDS = 10.0
"""How long a commit waits for another process's."""
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_SMALL_PAGES = 16_000
"""What is left is rewritten as a whole when it is no more than that: about a second."""
_SHRINK_SECONDS, _SHRINK_PAGES, _REST_SECONDS = 3.0, 100, 0.005
"""Otherwise: how long at most, pages in one transaction, and the time others have for theirs before the next."""
_TIDY_PAGES = 500
_BACKSTOP_PAGES = 20_000
"""Pages after which the WAL is written back even if the writer never rests."""


class SqliteDatabase:
    """One connection to the file; the file is made with mode 0600.

    Args:
        path: The file.
        durability: What a commit survives.
        is_patient: Wait for others who write; otherwise give up at once, and leave the WAL to others.
    """

    bytes_type: ClassVar[str] = "BLOB"
    sharing: ClassVar[str] = ""

    def __init__(self, path: str, *, durability: Durability = "normal", is_patient: bool = True) -> None:
        self._path = path
        self._patience = seconds = BUSY_SECONDS if is_patient else 0.0
        try:
            _make_private(path)
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=seconds)
        except (OSError, sqlite3.Error) as e:
            raise _told(path, "opened", e) from e
        try:
            self._set_up(durability, _BACKSTOP_PAGES if is_patient else 0)
        except sqlite3.Error as e:
            self._db.close()
            raise _told(path, "opened", e) from e

    def begin(self) -> None:
        """As `Database` says; the lock is taken at once, so that nothing written can be refused later."""
        self.execute("BEGIN IMMEDIATE")

    begin_alone = begin

    def commit(self) -> None:
        """As `Database` says."""
        self.execute("COMMIT")

    def rollback(self) -> None:
        """As `Database` says."""
        if self._db.in_transaction:
            self.execute("ROLLBACK")

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """As `Database` says."""
        try:
            return self._db.execute(sql, parameters).rowcount
        except sqlite3.Error as e:
            raise _told(self._path, "written", e) from e

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """As `Database` says."""
        try:
            return self._db.execute(sql, parameters).fetchall()
        except sqlite3.Error as e:
            raise _told(self._path, "read", e) from e

    def has_table(self, name: str) -> bool:
        """As `Database` says."""
        return bool(self.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)))

    def size(self) -> int:
        """As `Database` says."""
        pages, free, page = (
            self.query(f"PRAGMA {what}")[0][0] for what in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * page

    def shrink(self) -> None:
        """As `Database` says."""
        pages, free = (self.query(f"PRAGMA {what}")[0][0] for what in ("page_count", "freelist_count"))
        if pages - free <= _SMALL_PAGES:
            self.query("VACUUM")
        else:
            self._shrink_slowly()
        self.query("PRAGMA wal_checkpoint(TRUNCATE)")

    def _shrink_slowly(self) -> None:
        """Page by page takes long: what is not given back in time is used by the runs to come."""
        deadline = time.monotonic() + _SHRINK_SECONDS
        while time.monotonic() < deadline and self.query("PRAGMA freelist_count")[0][0]:
            try:
                self._db.executescript(f"PRAGMA incremental_vacuum({_SHRINK_PAGES})")  # `execute` gives back one page
            except sqlite3.Error as e:
                raise _told(self._path, "written", e) from e
            time.sleep(_REST_SECONDS)

    def tidy(self) -> None:
        """Write the WAL back, once there is something to write: a commit that has to wait for it would be slow."""
        try:
            if os.stat(self._path + "-wal").st_size > _TIDY_PAGES * 4096:
                self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except (OSError, sqlite3.Error):
            pass  # somebody reads just now: the next time

    def close(self) -> None:
        """As `Database` says."""
        self._db.close()

    def _set_up(self, durability: Durability, checkpoint_pages: int) -> None:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                if self._db.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                    self._db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # counts only before the first table
                    self._db.execute("PRAGMA journal_mode = WAL").fetchall()
                break
            except sqlite3.OperationalError as e:  # another process switches just now, and the timeout is not asked
                if not _is(e, *_LOCKED) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        self._db.execute(f"PRAGMA synchronous = {durability.upper()}")
        self._db.execute(f"PRAGMA wal_autocheckpoint = {checkpoint_pages}").fetchall()


def _make_private(path: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        pass


def _is(error: Exception, *codes: int) -> bool:
    """Whether SQLite's own code, without what refines it, is one of these."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in codes


def _told(path: str, what: str, error: Exception) -> JournalError:
    """What went wrong with the file, and what to do."""
    if _is(error, *_LOCKED):
        return JournalError(
            f"the journal {path} is held by another program, for more than {BUSY_SECONDS:g} s",
            hint=f"see who has it (fuser -v {path}) and end that; runs that were stopped by it can be resumed",
        )
    if _is(error, *_FULL) or isinstance(error, OSError):
        hint = "see that its folder can be written and has room; runs that were stopped by it can be resumed"
        return JournalError(f"the journal {path} cannot be {what}: {error}", hint=hint)
    if _is(error, *_DAMAGED):
        return JournalError(
            f"the journal {path} cannot be {what}: {error}",
            hint=f"it is damaged, or no journal: what is left can be had by `sqlite3 {path} .recover`; begin another",
        )
    return JournalError(f"the journal {path} cannot be {what}: {error}", hint="see that it is a file of ours")
