"""Conversations: message histories kept in the journal's database, so that a killed terminal loses nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from hatchway.core.errors import InvalidSetting
from hatchway.journal.conversations import MAIN, ConversationTable, StoredConversation
from hatchway.journal.store import Journal

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

TITLE_CHARACTERS = 120
"""What a list shows of the first prompt."""
State = Literal["idle", "open", "in use"]
"""`open`: a turn was broken off and can go on; `in use`: some process has it just now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRow:
    """A conversation as a list shows it."""

    id: str
    number: int
    """What a person picks it by; the same for good."""
    started: datetime
    updated: datetime
    title: str
    """The beginning of the first prompt."""
    turns: int
    """How many prompts it has had."""
    state: State
    working_dir: Path


class Conversations:
    """All conversations of a journal. Reading is plain and blocking; what an agent writes is awaited."""

    def __init__(self, journal: Journal, *, is_owner: bool = False) -> None:
        self.journal = journal
        self._is_owner = is_owner
        self._table = ConversationTable(journal)

    @classmethod
    def open(cls, journal: str | Path | Journal) -> Self:
        """The conversations of a journal, by its path or URL; a file is made, with its folder, when it is not there.

        Raises:
            InvalidSetting: No such kind of place.
            JournalError: It cannot be opened.
        """
        if isinstance(journal, Journal):
            return cls(journal)
        if "://" not in os.fspath(journal):
            Path(journal).expanduser().parent.mkdir(parents=True, exist_ok=True)
        return cls(Journal(journal), is_owner=True)

    def create(self, working_dir: str | Path | None = None) -> Conversation:
        """A new conversation, taken by this process."""
        return self._taken(self._table.create(_real(working_dir)))

    def newest(self, working_dir: str | Path | None = None) -> Conversation | None:
        """The one last spoken in in this directory, of those that no other process has; None when there is none."""
        rows = self._table.rows(working_dir=_real(working_dir), limit=50)
        free = next((row for row in rows if not row.is_taken), None)
        return self._taken(free.id) if free else None

    def pick(self, word: str | int) -> Conversation:
        """By number, by id, or by the first four or more characters of an id.

        Raises:
            InvalidSetting: There is no such conversation, or several.
            RunTaken: Another process has it.
        """
        return self._taken(self._found(str(word)).id)

    def list(self, working_dir: str | Path | None = None, *, limit: int = 100) -> list[ConversationRow]:
        """Conversations, the one last spoken in first; of all directories unless one is given."""
        where = None if working_dir is None else _real(working_dir)
        return [_row(each) for each in self._table.rows(working_dir=where, limit=limit)]

    def remove(self, word: str | int) -> None:
        """Forget a conversation. The runs its code made stay in the journal.

        Raises:
            InvalidSetting: There is no such conversation, or several.
            RunTaken: A process has it.
        """
        found = self._found(str(word)).id
        self._table.take(found)
        try:
            self._table.remove(found)
        finally:
            self._table.give_back(found)

    def close(self) -> None:
        """Let others have what was taken here. Legal twice."""
        if self._is_owner:
            self.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _taken(self, conversation_id: str) -> Conversation:
        self._table.take(conversation_id)
        return Conversation(self._table, conversation_id)

    def _found(self, word: str) -> StoredConversation:
        found = self._table.find(word)
        if len(found) != 1:
            several = "several conversations begin so" if found else "there is no such conversation"
            raise InvalidSetting(f"{word!r}: {several}", hint="hatchway conversations")
        return found[0]


class Conversation:
    """One conversation, or what one of its subagents said in it."""

    def __init__(self, table: ConversationTable, conversation_id: str, agent_id: str = MAIN) -> None:
        self.id = conversation_id
        self.agent_id = agent_id
        """Whose messages these are."""
        self._table = table

    @property
    def journal(self) -> Journal:
        """Where it is stored."""
        return self._table.journal

    @property
    def number(self) -> int:
        """What a person picks it by."""
        return self._table.find(self.id)[0].number

    async def append(
        self, messages: Sequence[ModelMessage], *, open_state: dict[str, Any] | bool | None = True
    ) -> None:
        """Add messages, in one transaction that is stored when this returns.

        Args:
            messages: What was said.
            open_state: What the turn leaves open from now on, None for nothing; True leaves it as it is.

        Raises:
            JournalError: They are not stored.
        """
        await self._add(messages, open_state=open_state)

    async def replace(self, messages: Sequence[ModelMessage]) -> None:
        """Take these for all that was said so far, as compaction does. What they replace stays in the database."""
        await self._add(messages, replace=True)

    def messages(self, *, every: bool = False) -> list[ModelMessage]:
        """What was said, in order; with `every` also what a shorter history replaced.

        Raises:
            JournalError: What is stored is no message.
        """
        from hatchway.agent.stored_messages import from_texts

        return from_texts(self._table.messages(self.id, self.agent_id, every=every))

    async def set_open(self, state: dict[str, Any] | None) -> None:
        """Say what the turn leaves open, such as `{"run_id": …, "tool_call_id": …}`; None: nothing."""
        await self._add((), open_state=state)

    def open_state(self) -> dict[str, Any] | None:
        """What a turn left open: a process that is gone was at it."""
        text = self._table.open_state(self.id, self.agent_id)
        return json.loads(text) if text else None

    def of(self, agent_id: str) -> Conversation:
        """What a subagent of this conversation says: kept with it, and taken with it."""
        return Conversation(self._table, self.id, agent_id)

    def agents(self) -> list[str]:
        """The ids of the agents that said something."""
        return self._table.agents(self.id)

    @contextmanager
    def spoken(self) -> Generator[None]:
        """One agent speaks here while this is entered.

        Raises:
            InvalidSetting: Another agent of this process does.
        """
        which = (self.id, self.agent_id)
        if which in self._table.spoken:
            raise InvalidSetting(
                f"another agent of this program has the conversation {self.number}",
                hint="stop that agent first, or make another conversation: `conversations.create()`",
            )
        self._table.spoken.add(which)
        try:
            yield
        finally:
            self._table.spoken.discard(which)

    def release(self) -> None:
        """Let other processes have it. Legal twice."""
        self._table.give_back(self.id)

    async def _add(
        self,
        messages: Sequence[ModelMessage],
        *,
        replace: bool = False,
        open_state: dict[str, Any] | bool | None = True,
    ) -> None:
        from hatchway.agent.stored_messages import prompts_in, to_texts

        said = prompts_in(messages) if self.agent_id == MAIN and not replace else []
        title = _one_line(" ".join(said))
        state = json.dumps(open_state) if isinstance(open_state, dict) else open_state
        await self._table.add(
            self.id, self.agent_id, to_texts(messages), title=title, turns=len(said), replace=replace, open_state=state
        )


def _row(stored: StoredConversation) -> ConversationRow:
    state: State = "in use" if stored.is_taken else "open" if stored.is_open else "idle"
    return ConversationRow(
        id=stored.id,
        number=stored.number,
        started=datetime.fromtimestamp(stored.started_at, UTC),
        updated=datetime.fromtimestamp(stored.updated_at, UTC),
        title=stored.title,
        turns=stored.turns,
        state=state,
        working_dir=Path(stored.working_dir),
    )


def _one_line(text: str) -> str:
    """For a list: without control characters, which a terminal would obey, and halves of characters."""
    shown = "".join(character if character.isprintable() else " " for character in text[: 10 * TITLE_CHARACTERS])
    return " ".join(shown.split())[:TITLE_CHARACTERS]


def _real(working_dir: str | Path | None) -> str:
    """The directory as a text that every database takes, also where its name is no text."""
    path = Path(working_dir or ".").expanduser().resolve()
    return str(path).encode("utf-8", "backslashreplace").decode()
