"""What the journal needs of a database. SQL is written once, with `?` for parameters, and runs on each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from hatchway.core.errors import InvalidSetting

Row = tuple[Any, ...]


class Database(Protocol):
    """One connection, used by one thread at a time."""

    bytes_type: ClassVar[str]
    """What a column of bytes is called."""
    sharing: ClassVar[str]
    """What makes a SELECT keep a row from being changed until the transaction ends."""

    def begin(self) -> None:
        """Begin a transaction that writes."""
        ...

    def begin_alone(self) -> None:
        """Begin a transaction that no other connection shares the schema with."""
        ...

    def commit(self) -> None:
        """End it well."""
        ...

    def rollback(self) -> None:
        """Take it back; legal without one."""
        ...

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Change something; how many rows."""
        ...

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Ask something."""
        ...

    def has_table(self, name: str) -> bool:
        """Whether there is such a table."""
        ...

    def size(self) -> int:
        """Bytes in use."""
        ...

    def shrink(self) -> None:
        """Give room that is not used any more back to the system, as far as it is cheap."""
        ...

    def tidy(self) -> None:
        """Called when there is nothing else to do."""
        ...

    def close(self) -> None:
        """Give the connection back. Legal twice."""
        ...


POSTGRES = ("postgresql://", "postgres://")


def is_postgres(place: str) -> bool:
    """Whether a journal's place is a PostgreSQL database."""
    return place.startswith(POSTGRES)


def file_of(place: str) -> str:
    """The file of a journal that is not in PostgreSQL.

    Raises:
        InvalidSetting: It is a URL of something else.
    """
    scheme, found, rest = place.partition("://")
    if not found:
        return place
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        return rest[1:]  # sqlite:///relative and sqlite:////absolute, as everywhere
    raise InvalidSetting(
        f"a journal is a path, sqlite:///PATH or postgresql://…, not {scheme}://…",
        hint="CodeMode(journal='.hatchway/journal.db')",
    )
