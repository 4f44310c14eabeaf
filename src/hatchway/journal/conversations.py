"""The messages of conversations, as texts, in the journal's database. What a message is, the agent knows."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass

from hatchway.core.errors import RunTaken
from hatchway.journal.database import Database
from hatchway.journal.jobs import Change
from hatchway.journal.store import Journal

MAIN = "main"
"""The agent a person talks to; its subagents have ids of their own."""
_COLUMNS = "conversation_id, number, working_dir, started_at, updated_at, title, turns"
_MINE = " WHERE conversation_id = ? AND agent_id = ?"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredConversation:
    """A conversation as a list shows it."""

    id: str
    number: int
    """Counts up from 1, the same for good."""
    working_dir: str
    started_at: float
    """Seconds since the epoch."""
    updated_at: float
    """Seconds since the epoch."""
    title: str
    """What it is about, in one line; empty before anything was said."""
    turns: int
    """How many prompts it has had."""
    is_open: bool
    """Whether a turn of it has not ended."""
    is_taken: bool
    """Whether some process has it just now."""


class ConversationTable:
    """The conversations of one journal.

    Args:
        journal: Where they are kept, beside the runs their code made.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.spoken: set[tuple[str, str]] = set()
        """What an agent of this process speaks in, by conversation and agent: two would mix what they say."""

    def create(self, working_dir: str) -> str:
        """A new conversation; its id."""
        conversation_id, now = secrets.token_hex(6), time.time()

        def insert(db: Database) -> None:
            db.execute(
                "UPDATE meta SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT) WHERE name = 'conversations'"
            )  # whoever counts waits for the other: no number is given twice
            number = int(db.query("SELECT value FROM meta WHERE name = 'conversations'")[0][0])
            db.execute(
                f"INSERT INTO conversations ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, '', 0)",
                (conversation_id, number, working_dir, now, now),
            )

        self.journal.write(insert)
        return conversation_id

    def rows(self, *, working_dir: str | None = None, limit: int = 100) -> list[StoredConversation]:
        """Conversations, the one last spoken in first.

        Args:
            working_dir: Only those of this directory.
            limit: At most so many.
        """
        where, values = ("", []) if working_dir is None else (" WHERE working_dir = ?", [working_dir])
        sql = f"SELECT {_COLUMNS} FROM conversations{where} ORDER BY updated_at DESC, number DESC LIMIT ?"
        return self._stored(sql, [*values, limit])

    def find(self, word: str) -> list[StoredConversation]:
        """Those of this number or this id, or whose id begins so."""
        if word.isascii() and word.isdigit() and len(word) < 10:
            found = self._stored(f"SELECT {_COLUMNS} FROM conversations WHERE number = ?", [int(word)])
            if found:
                return found
        if len(word) < 4 or not word.isalnum():
            return []
        sql = f"SELECT {_COLUMNS} FROM conversations WHERE conversation_id >= ? AND conversation_id < ? LIMIT 2"
        return self._stored(sql, [word, word + "\x7f"])

    def waiting_for(self, session_id: str) -> StoredConversation | None:
        """The one whose open turn is at an action of this session; None when there is none."""
        sql = (
            f"SELECT {_COLUMNS} FROM conversations WHERE conversation_id IN"
            " (SELECT conversation_id FROM conversation_parts WHERE open_state LIKE ?) LIMIT 1"
        )
        found = self._stored(sql, [f'%"{session_id}"%']) if session_id else []
        return found[0] if found else None

    def take(self, conversation_id: str) -> None:
        """Keep others from adding to it until it is given back or this process ends.

        Raises:
            RunTaken: Somebody else has it.
        """
        if not self.journal.locks.take(f"conversation-{conversation_id}"):
            [taken] = self.find(conversation_id)
            error = RunTaken(conversation_id, what="conversation")
            error.message = f"conversation {taken.number} is open in another terminal or program"
            error.hint = "go on there, or leave it there first; without --session a new one begins"
            raise error

    def give_back(self, conversation_id: str) -> None:
        """Let others add to it. Legal without it."""
        self.journal.locks.give_back(f"conversation-{conversation_id}")

    def messages(self, conversation_id: str, agent_id: str = MAIN, *, every: bool = False) -> list[str]:
        """The messages that count now, in order; with `every` also those a shorter history replaced."""
        sql = (
            "SELECT m.body FROM messages AS m JOIN conversation_parts AS p"
            " ON p.conversation_id = m.conversation_id AND p.agent_id = m.agent_id"
            " WHERE m.conversation_id = ? AND m.agent_id = ?"
        )
        now = "" if every else " AND m.generation = p.generation"
        return [row[0] for row in self.journal.query(f"{sql}{now} ORDER BY m.n", (conversation_id, agent_id))]

    def agents(self, conversation_id: str) -> list[str]:
        """The ids of all agents that said something in it."""
        sql = "SELECT agent_id FROM conversation_parts WHERE conversation_id = ? ORDER BY agent_id"
        return [row[0] for row in self.journal.query(sql, (conversation_id,))]

    def open_state(self, conversation_id: str, agent_id: str = MAIN) -> str | None:
        """What the last turn left open."""
        rows = self.journal.query(f"SELECT open_state FROM conversation_parts{_MINE}", (conversation_id, agent_id))
        return rows[0][0] if rows else None

    async def add(
        self,
        conversation_id: str,
        agent_id: str,
        bodies: Sequence[str],
        *,
        title: str = "",
        turns: int = 0,
        replace: bool = False,
        open_state: str | bool | None = True,
    ) -> None:
        """Store messages, and what is open, in one transaction.

        Args:
            conversation_id: Where they belong.
            agent_id: Who said them.
            bodies: The messages.
            title: What it is about, for a conversation that has no title yet.
            turns: How many new prompts are among them.
            replace: They stand for all that was said before, which is kept but does not count any more.
            open_state: What the turn leaves open, None for nothing; True changes nothing.

        Raises:
            JournalError: They are not stored.
        """
        part, now = (conversation_id, agent_id), time.time()

        def store(db: Database) -> None:
            generation, last = _part(db, part)
            generation += replace
            for n, body in enumerate(bodies, last + 1):
                db.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?)", (*part, n, generation, now, body))
            db.execute(
                f"UPDATE conversation_parts SET generation = ?, last_n = ?{_MINE}",
                (generation, last + len(bodies), *part),
            )
            if open_state is not True:
                db.execute(f"UPDATE conversation_parts SET open_state = ?{_MINE}", (open_state or None, *part))
            db.execute(
                "UPDATE conversations SET updated_at = ?, turns = turns + ?,"
                " title = CASE WHEN title = '' THEN ? ELSE title END WHERE conversation_id = ?",
                (now, turns, title, conversation_id),
            )

        await self.journal.written(store)

    def size(self, conversation_id: str) -> int:
        """About how many bytes it takes."""
        sql = "SELECT COALESCE(SUM(LENGTH(body) + 100), 0) FROM messages WHERE conversation_id = ?"
        return int(self.journal.query(sql, (conversation_id,))[0][0])

    def remove(self, conversation_id: str) -> None:
        """Forget a conversation; the runs its code made are kept."""
        self.journal.write(_dropped(conversation_id))

    def _stored(self, sql: str, values: Sequence[object]) -> list[StoredConversation]:
        return [
            StoredConversation(
                id=found, number=number, working_dir=where, started_at=started, updated_at=updated, title=title,
                turns=turns, is_open=self._is_open(found),
                is_taken=not self.journal.locks.is_free(f"conversation-{found}"),
            )
            for found, number, where, started, updated, title, turns in self.journal.query(sql, values)
        ]  # fmt: skip

    def _is_open(self, conversation_id: str) -> bool:
        sql = "SELECT 1 FROM conversation_parts WHERE conversation_id = ? AND open_state IS NOT NULL LIMIT 1"
        return bool(self.journal.query(sql, (conversation_id,)))


def _part(db: Database, part: tuple[str, str]) -> tuple[int, int]:
    """The generation and the last number of what an agent said; made when it says its first word."""
    rows = db.query(f"SELECT generation, last_n FROM conversation_parts{_MINE}", part)
    if rows:
        return rows[0][0], rows[0][1]
    db.execute("INSERT INTO conversation_parts VALUES (?, ?, 0, 0, NULL)", part)
    return 0, 0


def _dropped(conversation_id: str) -> Change:
    def drop(db: Database) -> None:
        for table in ("messages", "conversation_parts", "conversations"):
            db.execute(f"DELETE FROM {table} WHERE conversation_id = ?", (conversation_id,))

    return drop
