"""Pruning: ended runs are dropped, oldest first. A run that has not ended is never dropped."""

from __future__ import annotations

import time
from dataclasses import dataclass

from hatchway.journal.database import Database

_ENDED = "state IN ('done', 'failed')"


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
    doomed = list(dict.fromkeys(doomed))
    freed = sum(_size(db, run_id) for run_id in doomed)
    for run_id in () if dry_run else doomed:
        for table in ("log", "checkpoints", "rules", "runs"):
            db.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))
    return Pruned(len(doomed), freed)


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
