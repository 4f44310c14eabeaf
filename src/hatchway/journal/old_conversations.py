"""Old conversations: dropped by age, number or size. One that is open, or that somebody has just now, never is."""

from __future__ import annotations

import time
from dataclasses import dataclass

from hatchway.journal.conversations import ConversationTable, StoredConversation

MOST = 1_000_000
"""Conversations that are looked at."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """What was dropped."""

    conversations: int
    """How many."""
    bytes: int
    """About how many bytes they took."""


def prune_conversations(
    table: ConversationTable,
    *,
    older_than: float | None = None,
    keep: int | None = None,
    max_bytes: int | None = None,
    dry_run: bool = False,
) -> Dropped:
    """Drop idle conversations with all that was said in them; how many, and about how many bytes.

    Args:
        table: The conversations of a journal.
        older_than: Those last spoken in more seconds ago.
        keep: All but so many that were last spoken in.
        max_bytes: The oldest, until the journal fits.
        dry_run: Only say what would be dropped.

    Raises:
        JournalError: The journal cannot be read or written.
    """
    rows = table.rows(limit=MOST)
    doomed = [] if older_than is None else [row for row in rows if row.updated_at < time.time() - older_than]
    doomed += [] if keep is None else rows[keep:]
    sizes = {row.id: table.size(row.id) for row in doomed if _is_idle(row)}
    if max_bytes is not None:
        too_much = table.journal.size() - max_bytes - sum(sizes.values())
        for row in reversed(rows):
            if too_much > 0 and _is_idle(row) and row.id not in sizes:
                sizes[row.id] = table.size(row.id)
                too_much -= sizes[row.id]
    gone = list(sizes) if dry_run else [each for each in sizes if _dropped(table, each)]
    return Dropped(len(gone), sum(sizes[each] for each in gone))


def _is_idle(row: StoredConversation) -> bool:
    return not row.is_open and not row.is_taken


def _dropped(table: ConversationTable, conversation_id: str) -> bool:
    """Drop one, unless somebody has taken it up meanwhile."""
    if not table.journal.locks.take(f"conversation-{conversation_id}"):
        return False
    try:
        [row] = table.find(conversation_id)
        if row.is_open:
            return False
        table.remove(conversation_id)
        return True
    finally:
        table.give_back(conversation_id)
