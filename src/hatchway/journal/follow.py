"""Following a run live, also from another process: the log is read again whenever it may have grown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from hatchway.core.events import AgentEvent
from hatchway.journal.events import EventTeller

if TYPE_CHECKING:
    from hatchway.journal.stored_runs import StoredRuns

FIRST_PAUSE, LAST_PAUSE = 0.02, 0.25
"""Seconds between two looks: soon after something came, later when the run is quiet."""
AT_ONCE = 1000
"""Entries read at a time."""


async def followed(journal: StoredRuns, run_id: str) -> AsyncGenerator[AgentEvent, None]:
    """The events of a run from its start on, until it has ended; a paused or dead run is waited for.

    Raises:
        UnknownRun: No such run.
    """
    run = await asyncio.to_thread(journal.run, run_id)
    teller, after, pause = EventTeller(run), 0, FIRST_PAUSE
    yield teller.started()
    while True:
        run = await asyncio.to_thread(journal.run, run.run_id)  # before its entries: the ending is there by then
        entries = await asyncio.to_thread(journal.entries, run.run_id, after=after, limit=AT_ONCE)
        for entry in entries:
            if entry.kind == "ended":
                run = await asyncio.to_thread(journal.run, run.run_id)
            for event in teller.told(entry, run):
                yield event
            after = entry.n
        if not entries and run.ending is not None:
            return
        pause = FIRST_PAUSE if entries else min(2 * pause, LAST_PAUSE)
        await asyncio.sleep(0 if len(entries) == AT_ONCE else pause)
