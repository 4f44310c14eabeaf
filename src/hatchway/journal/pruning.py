"""Pruning: ended runs are dropped, oldest first. A run that has not ended is never dropped, nor what it builds on."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hatchway.journal.database import Database

AT_ONCE_BYTES, AT_ONCE_RUNS = 4 * 1024**2, 200
"""What one transaction drops: those who write calls meanwhile wait for no more than that."""
REST_SECONDS = 0.005
"""Between two of them, so that others have their turn: SQLite has no queue."""
_ENDED = (
    "state IN ('done', 'failed') AND NOT EXISTS (SELECT 1 FROM runs AS other"
    " WHERE other.session_id = runs.session_id AND other.state NOT IN ('done', 'failed'))"
    " AND NOT EXISTS (SELECT 1 FROM conversation_parts AS part WHERE runs.session_id <> ''"
    " AND REPLACE(part.open_state, runs.session_id, '') <> part.open_state)"
)
"""Of no session that has something left to do, and of none that an open turn goes on with: it would run again."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was dropped."""

    runs: int
    """How many runs."""
    bytes: int
    """About how many bytes they took."""


def pruned(
    db: Database, *, older_than: float | None, keep: int | None, max_bytes: int | None, dry_run: bool = False
) -> Pruned:
    """Drop ended runs by age in seconds, by number, or until the rest fits. Without any bound nothing is dropped."""
    doomed: list[str] = []
    if older_than is not None:
        asked = f"SELECT run_id FROM runs WHERE {_ENDED} AND ended_at < ?"
        doomed += [row[0] for row in db.query(asked, (time.time() - older_than,))]
    if keep is not None:
        asked = f"SELECT run_id FROM runs WHERE {_ENDED} ORDER BY ended_at DESC LIMIT 1000000000 OFFSET ?"
        doomed += [row[0] for row in db.query(asked, (keep,))]
    if max_bytes is not None:
        doomed += _over(db, max_bytes)
    sizes = {run_id: _size(db, run_id) for run_id in doomed}
    for batch in () if dry_run else _batches(sizes):
        _drop(db, batch)
    return Pruned(len(sizes), sum(sizes.values()))


def _batches(sizes: dict[str, int]) -> Iterator[list[str]]:
    batch: list[str] = []
    taken = 0
    for run_id, size in sizes.items():
        batch.append(run_id)
        taken += size
        if taken >= AT_ONCE_BYTES or len(batch) >= AT_ONCE_RUNS:
            yield batch
            batch, taken = [], 0
            time.sleep(REST_SECONDS)
    if batch:
        yield batch


def _drop(db: Database, batch: Sequence[str]) -> None:
    db.begin()
    try:
        for run_id in batch:
            if db.execute(f"DELETE FROM runs WHERE run_id = ? AND {_ENDED}", (run_id,)):
                for table in ("log", "checkpoints", "rules"):
                    db.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))
        db.commit()
    except BaseException:
        db.rollback()
        raise


def _over(db: Database, max_bytes: int) -> list[str]:
    """The oldest ended runs that take what is too much."""
    too_much, doomed = db.size() - max_bytes, list[str]()
    for (run_id,) in db.query(f"SELECT run_id FROM runs WHERE {_ENDED} ORDER BY ended_at") if too_much > 0 else ():
        if too_much <= 0:
            break
        too_much -= _size(db, run_id)
        doomed.append(run_id)
    return doomed


def _size(db: Database, run_id: str) -> int:
    head = db.query("SELECT LENGTH(head) + COALESCE(LENGTH(ending), 0) FROM runs WHERE run_id = ?", (run_id,))
    log = db.query("SELECT COALESCE(SUM(LENGTH(body) + 100), 0) FROM log WHERE run_id = ?", (run_id,))
    return int(head[0][0]) + int(log[0][0]) if head else 0
