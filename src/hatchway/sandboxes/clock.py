"""The wall clock of one execution: it stands while the code waits on the host, but CPU burnt meanwhile counts.

A guest may lie about waiting. What it then burns past what honest running could have burnt (time run, on every core)
is added, so a lie buys nothing: the CPU of an execution never exceeds its seconds on all cores.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
GRACE = 0.05
"""Seconds of CPU not held against the code: the kernel counts in ticks, and starting up is not its fault."""
MIN_WAIT = 0.01


class WallClock:
    """Counts one execution's seconds and strikes when they are over.

    Args:
        seconds: `Limits.wall_seconds`.
        cpu_seconds: CPU time of the code and its descendants since the execution began.
        on_over: Called once, on the loop, when the time is over.
    """

    def __init__(self, seconds: float, cpu_seconds: Callable[[], float], on_over: Callable[[], None]) -> None:
        self._seconds = seconds
        self._cpu_seconds = cpu_seconds
        self._on_over = on_over
        self._loop = asyncio.get_running_loop()
        self._now = time.monotonic  # what the loop goes by, without its frame
        self._ran = 0.0
        self._since: float | None = self._now()
        self._has_stood = False
        self._cpu_before = 0.0
        self._timer = self._loop.call_later(seconds / CORES, self._look)

    @property
    def ran(self) -> float:
        """Seconds the code ran, without those it stood."""
        return self._ran if self._since is None else self._ran + self._now() - self._since

    def stand(self) -> None:
        """The code waits on the host."""
        if self._since is not None:
            self._ran += self._now() - self._since
            self._since = None
            self._has_stood = True

    def run(self) -> None:
        """The code goes on."""
        if self._since is None:
            self._since = self._now()

    def set(self, ran: float) -> None:
        """Go on as if the code had run so long until now, whatever it took to get here."""
        self._ran, self._since = ran, None if self._since is None else self._now()
        self._cpu_before = self._cpu_seconds()

    def stop(self) -> None:
        """The execution is over."""
        self.stand()
        self._timer.cancel()

    def _look(self) -> None:
        left = self._seconds - self.ran - self._lied()
        if left <= 0:
            self._on_over()
            return
        # never late: as if every core burnt from here on, unless the end is so near that it makes no difference
        self._timer = self._loop.call_later(max(left / CORES, min(left, MIN_WAIT)), self._look)

    def _lied(self) -> float:
        if not self._has_stood:
            return 0.0
        return max(0.0, self._cpu_seconds() - self._cpu_before - GRACE - CORES * self.ran)
