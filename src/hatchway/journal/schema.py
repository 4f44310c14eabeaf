"""The tables of a journal, their version, and the way from older versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hatchway.core.errors import JournalError
from hatchway.journal.database import Database

VERSION = 3

_FIRST = (
    "CREATE TABLE runs ("
    " run_id TEXT PRIMARY KEY, session_id TEXT, place INTEGER NOT NULL, state TEXT NOT NULL, epoch INTEGER NOT NULL,"
    " sandbox TEXT NOT NULL, tier TEXT NOT NULL, started_at DOUBLE PRECISION NOT NULL,"
    " updated_at DOUBLE PRECISION NOT NULL, ended_at DOUBLE PRECISION, head TEXT NOT NULL, ending TEXT)",
    "CREATE INDEX runs_by_time ON runs (started_at)",
    "CREATE INDEX runs_by_state ON runs (state, started_at)",
    "CREATE INDEX runs_by_session ON runs (session_id, place)",
    "CREATE TABLE log ("
    " run_id TEXT NOT NULL, n INTEGER NOT NULL, kind TEXT NOT NULL, call_id TEXT, at DOUBLE PRECISION NOT NULL,"
    " body TEXT NOT NULL, PRIMARY KEY (run_id, n))",
    "CREATE TABLE checkpoints ("
    " run_id TEXT NOT NULL, epoch INTEGER NOT NULL, at DOUBLE PRECISION NOT NULL, used_at DOUBLE PRECISION,"
    " sealed {bytes} NOT NULL, PRIMARY KEY (run_id, epoch))",
)
_SECOND = (
    "CREATE TABLE rules ("
    " rule_id TEXT PRIMARY KEY, run_id TEXT, created_at DOUBLE PRECISION NOT NULL, body TEXT NOT NULL)",
)
_THIRD = (
    "CREATE TABLE conversations ("
    " conversation_id TEXT PRIMARY KEY, number INTEGER NOT NULL, working_dir TEXT NOT NULL,"
    " started_at DOUBLE PRECISION NOT NULL, updated_at DOUBLE PRECISION NOT NULL, title TEXT NOT NULL,"
    " turns INTEGER NOT NULL)",
    "CREATE INDEX conversations_by_time ON conversations (updated_at)",
    "CREATE TABLE conversation_parts ("
    " conversation_id TEXT NOT NULL, agent_id TEXT NOT NULL, generation INTEGER NOT NULL, last_n INTEGER NOT NULL,"
    " open_state TEXT, PRIMARY KEY (conversation_id, agent_id))",
    "CREATE TABLE messages ("
    " conversation_id TEXT NOT NULL, agent_id TEXT NOT NULL, n INTEGER NOT NULL, generation INTEGER NOT NULL,"
    " at DOUBLE PRECISION NOT NULL, body TEXT NOT NULL, PRIMARY KEY (conversation_id, agent_id, n))",
    "INSERT INTO meta (name, value) VALUES ('conversations', '0')",
)
MIGRATIONS: Mapping[int, Sequence[str]] = {1: _FIRST, 2: _SECOND, 3: _THIRD}
"""What makes a journal of version n out of one of version n - 1. A published step never changes."""


def version(db: Database) -> int:
    """The version of a journal; 0 for a database without one."""
    if not db.has_table("meta"):
        return 0
    rows = db.query("SELECT value FROM meta WHERE name = 'version'")
    return int(rows[0][0]) if rows else 0


def bring_up(db: Database) -> None:
    """Make the tables, or bring those of an older version up to this one; of several processes one does it.

    Raises:
        JournalError: A newer Hatchway made this journal.
    """
    found = version(db)
    if found == VERSION:
        return
    if found > VERSION:
        raise JournalError(
            f"the journal has version {found}, this Hatchway knows up to {VERSION}", hint="pip install -U hatchway"
        )
    db.begin_alone()
    try:
        if (found := version(db)) == 0:
            db.execute("CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            db.execute("INSERT INTO meta (name, value) VALUES ('version', '0')")
        for step in range(found + 1, VERSION + 1):
            for statement in MIGRATIONS[step]:
                db.execute(statement.format(bytes=db.bytes_type))
        db.execute("UPDATE meta SET value = ? WHERE name = 'version'", (str(VERSION),))
        db.commit()
    except BaseException:
        db.rollback()
        raise
