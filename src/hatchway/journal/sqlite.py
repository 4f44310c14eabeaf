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
        seconds = BUSY_SECONDS if is_patient else 0.0
        try:
            _make_private(path)
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=seconds)
            self._set_up(durability, _BACKSTOP_PAGES if is_patient else 0)
        except (OSError, sqlite3.Error) as e:
            raise JournalError(f"the journal {path} cannot be opened: {e}", hint="see that it is a file of ours") from e

    def begin(self) -> None:
        """As `Database` says; the lock is taken at once, so that nothing written can be refused later."""
        self._db.execute("BEGIN IMMEDIATE")

    begin_alone = begin

    def commit(self) -> None:
        """As `Database` says."""
        self._db.execute("COMMIT")

    def rollback(self) -> None:
        """As `Database` says."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """As `Database` says."""
        return self._db.execute(sql, parameters).rowcount

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """As `Database` says."""
        return self._db.execute(sql, parameters).fetchall()

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
        self._db.execute("PRAGMA incremental_vacuum").fetchall()
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

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
        for attempt in range(100):
            try:
                if self.query("PRAGMA journal_mode")[0][0] != "wal":
                    self._db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # counts only before the first table
                    self._db.execute("PRAGMA journal_mode = WAL").fetchall()
                break
            except sqlite3.OperationalError:  # another process switches just now, and the timeout is not asked
                if attempt == 99:
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
