"""The journal in PostgreSQL, for several machines. Needs the extra `postgres`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from hatchway.core.errors import JournalError, MissingExtra
from hatchway.journal.database import Row

_MIGRATION_LOCK = 0x6861_7463_6877_6179  # "hatchway": whoever makes the tables holds it


class PostgresDatabase:
    """One connection, by URL."""

    bytes_type: ClassVar[str] = "BYTEA"
    sharing: ClassVar[str] = " FOR SHARE"

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError as e:
            raise MissingExtra("the PostgreSQL driver psycopg", "postgres") from e
        try:
            self._db = psycopg.connect(url, autocommit=True)
        except psycopg.Error as e:
            raise JournalError(f"the journal's database cannot be reached: {_told(e)}", hint="see that it runs") from e
        self._known: dict[str, str] = {}

    def begin(self) -> None:
        """As `Database` says."""
        self._db.execute("BEGIN")

    def begin_alone(self) -> None:
        """As `Database` says."""
        self.begin()
        self._db.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))

    def commit(self) -> None:
        """As `Database` says."""
        self._db.execute("COMMIT")

    def rollback(self) -> None:
        """As `Database` says."""
        from psycopg.pq import TransactionStatus

        if self._db.info.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN):
            self._db.execute("ROLLBACK")

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """As `Database` says."""
        return self._db.execute(self._own(sql), parameters).rowcount

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """As `Database` says."""
        return self._db.execute(self._own(sql), parameters).fetchall()

    def has_table(self, name: str) -> bool:
        """As `Database` says."""
        return bool(self.query("SELECT 1 WHERE to_regclass(?) IS NOT NULL", (name,)))

    def size(self) -> int:
        """As `Database` says."""
        tables = ("log", "runs", "checkpoints")
        return sum(int(self.query("SELECT pg_total_relation_size(to_regclass(?))", (t,))[0][0] or 0) for t in tables)

    def shrink(self) -> None:
        """As `Database` says."""
        for table in ("log", "runs", "checkpoints"):
            self._db.execute(cast(Any, f"VACUUM {table}"))

    def tidy(self) -> None:
        """As `Database` says; the server does that itself."""

    def close(self) -> None:
        """As `Database` says."""
        self._db.close()

    def _own(self, sql: str) -> Any:
        own = self._known.get(sql)
        if own is None:
            own = self._known[sql] = sql.replace("?", "%s")
        return own


def _told(error: Exception) -> str:
    """The driver's first line; it names host and user, never the password."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
