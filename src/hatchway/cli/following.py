"""Following: a run watched live from the journal, whoever drives it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from hatchway.cli.display import make_console
from hatchway.cli.exits import Exit, exit_for
from hatchway.cli.objects import event_object, print_json
from hatchway.cli.standing import standing_line
from hatchway.core.events import AgentEvent, RunFailed
from hatchway.journal.entries import RunRow, RunState
from hatchway.journal.store import Journal
from hatchway.trace.record import Record
from hatchway.trace.terminal import Painter

QUIET_SECONDS = 0.3
"""After so long without an event, what is held back is shown, and where the run stands."""


class Watcher(Protocol):
    """Shows a run while it happens."""

    def take(self, event: AgentEvent) -> None:
        """Something happened."""
        ...

    def rest(self, run: RunRow) -> None:
        """Nothing happened for a moment; this is how the run stands."""
        ...


class TerminalWatcher:
    """The timeline, line by line."""

    def __init__(self, journal: Journal, *, full: bool) -> None:
        self._journal = journal
        self._record = Record()
        self._painter = Painter(make_console(), whole=full)
        self._told: tuple[RunState, int] | None = None

    def take(self, event: AgentEvent) -> None:
        """As `Watcher` says."""
        for block in self._record.told(event):
            self._painter.paint(block)

    def rest(self, run: RunRow) -> None:
        """As `Watcher` says; where it stands is said once per pause."""
        for block in self._record.rest():
            self._painter.paint(block)
        if run.state == "running" or self._told == (run.state, run.epoch):
            return
        self._told = (run.state, run.epoch)
        if (line := standing_line(self._journal, run)) is not None:
            self._painter.paint(line)


class JsonWatcher:
    """One event per line."""

    def take(self, event: AgentEvent) -> None:
        """As `Watcher` says."""
        print_json(event_object(event))

    def rest(self, run: RunRow) -> None:
        """As `Watcher` says."""


async def watch(journal: Journal, run: RunRow, watcher: Watcher) -> Exit:
    """Show a run until it has ended; how it did."""
    end = Exit.DONE
    async with aclosing(journal.follow(run.run_id)) as events:
        while (event := await _next(events, journal, run, watcher)) is not None:
            watcher.take(event)
            if isinstance(event, RunFailed):
                end = exit_for(event.error)
    watcher.rest(await asyncio.to_thread(journal.run, run.run_id))
    return end


async def _next(
    events: AsyncGenerator[AgentEvent, None], journal: Journal, run: RunRow, watcher: Watcher
) -> AgentEvent | None:
    """The next event; None at the end. The waiting itself is never cancelled: that would end the generator."""
    coming = asyncio.ensure_future(anext(events, None))
    try:
        while not (await asyncio.wait({coming}, timeout=QUIET_SECONDS))[0]:
            watcher.rest(await asyncio.to_thread(journal.run, run.run_id))
        return coming.result()
    finally:
        coming.cancel()
