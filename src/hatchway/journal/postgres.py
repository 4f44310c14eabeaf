"""The journal in PostgreSQL, for several machines. Needs the extra `postgres`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

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
        self._url = url
        self._error: type[Exception] = psycopg.Error
        self._known: dict[str, str] = {}
        self.connections = 0
        self._db = self._connected()

    def begin(self) -> None:
        """As `Database` says; a server that was started anew is asked again."""
        self._ask("BEGIN", (), is_first=True)

    def begin_alone(self) -> None:
        """As `Database` says."""
        self.begin()
        self._ask("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))

    def commit(self) -> None:
        """As `Database` says."""
        self._ask("COMMIT", ())

    def rollback(self) -> None:
        """As `Database` says."""
        if self._is_within():
            self._ask("ROLLBACK", ())

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """As `Database` says."""
        return self._ask(self._own(sql), parameters).rowcount

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """As `Database` says."""
        return self._ask(self._own(sql), parameters, is_first=not self._is_within()).fetchall()

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
            self._ask(f"VACUUM {table}", ())

    def tidy(self) -> None:
        """As `Database` says; the server does that itself."""

    def close(self) -> None:
        """As `Database` says."""
        self._db.close()

    def _connected(self) -> Any:
        import psycopg

        self.connections += 1
        try:
            return psycopg.connect(self._url, autocommit=True)
        except psycopg.Error as e:
            raise JournalError(f"the journal's database cannot be reached: {_told(e)}", hint="see that it runs") from e

    def _ask(self, sql: Any, parameters: Sequence[Any], *, is_first: bool = False) -> Any:
        """Send a statement; the first one of a transaction is sent again when the connection turns out to be dead."""
        for is_last in (not is_first, True):
            try:
                return self._db.execute(sql, parameters)
            except self._error as e:
                if self._db.closed and not is_last:
                    self._db = self._connected()
                    continue
                hint = "see that it runs; runs that were stopped by it can be resumed"
                raise JournalError(f"the journal's database: {_told(e)}", hint=hint) from e
        raise AssertionError("the second time is the last")

    def _is_within(self) -> bool:
        from psycopg.pq import TransactionStatus

        return self._db.info.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN)

    def _own(self, sql: str) -> Any:
        own = self._known.get(sql)
        if own is None:
            own = self._known[sql] = sql.replace("?", "%s")
        return own


def _told(error: Exception) -> str:
    """The driver's first line; it names host and user, never the password."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
