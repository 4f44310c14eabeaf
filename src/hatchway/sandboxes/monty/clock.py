"""The clock of one action: how long it ran, and a timer for what Monty's own clock does not see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class RunClock:
    """Counts the seconds an action runs; it stands while the action waits on the host.

    Monty counts the time of its own work, more exactly than a host can, and stops at its limit. It does not count
    sleep, and in a session it has no limit for one action. For these the clock is made strict and strikes itself.

    Args:
        seconds: `Limits.wall_seconds`.
        on_over: Called on the loop when a strict clock's time is over.
        ran: Seconds already gone before a dump.
    """

    def __init__(self, seconds: float, on_over: Callable[[], None], *, ran: float = 0.0) -> None:
        self._seconds = seconds
        self._on_over = on_over
        self._ran = ran
        self._loop = asyncio.get_running_loop()
        self._since: float | None = None
        self._is_strict = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def ran(self) -> float:
        """Seconds the action ran so far."""
        return self._ran if self._since is None else self._ran + self._loop.time() - self._since

    def run(self) -> None:
        """The action goes on."""
        if self._since is None:
            self._since = self._loop.time()
            if self._is_strict:
                self._arm()

    def stand(self) -> None:
        """The action waits on the host, or has ended."""
        if self._since is not None:
            self._ran, self._since = self.ran, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def set(self, ran: float) -> None:
        """Go on as if the action had run so long until now."""
        is_running = self._since is not None
        self.stand()
        self._ran = ran
        if is_running:
            self.run()

    def be_strict(self) -> None:
        """Strike when the time is over, from now on."""
        if not self._is_strict:
            self._is_strict = True
            if self._since is not None:
                self._arm()

    def _arm(self) -> None:
        self._timer = self._loop.call_later(max(0.0, self._seconds - self.ran), self._on_over)
