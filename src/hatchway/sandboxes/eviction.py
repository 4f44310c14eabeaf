"""Idle sessions are evicted: after a time, and when there are too many, the one that was idle longest first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from hatchway.core.errors import InvalidSetting, SandboxUnavailable

GONE = "the session is gone: its interpreter died or was killed"
HINT = "open a new session; what this one had (names, imports, files) is lost"


class Evictable(Protocol):
    """A session that can be put to an end while nothing runs in it."""

    @property
    def idle_since(self) -> float | None:
        """By the clock of the event loop, when its last action ended; None while one runs."""
        ...

    async def evict(self, why: str) -> None:
        """End it; from here on it says that it is gone, and why."""
        ...


class Sessions:
    """The open sessions of one sandbox.

    Args:
        idle_seconds: How long one may be idle; None: as long as it likes.
        most: How many may be open; None: as many as the machine can hold.

    Raises:
        InvalidSetting: A number that is none, or not positive.
    """

    def __init__(self, *, idle_seconds: float | None, most: int | None) -> None:
        for name, value in (("session_idle_seconds", idle_seconds), ("max_sessions", most)):
            if value is not None and (isinstance(value, bool) or not value > 0):
                raise InvalidSetting(f"{name} must be a positive number, not {value!r}")
        self._idle_seconds, self._most = idle_seconds, most
        self._open: list[Evictable] = []
        self._opening = 0
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._evicting: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def place(self) -> AsyncGenerator[Callable[[Evictable], None]]:
        """Room for one more; what is given takes the session once it is open, and lets go of it at the end.

        Raises:
            SandboxUnavailable: There are `most`, and none of them is idle.
        """
        await self._make_room()
        self._opening += 1
        held: list[Evictable] = []

        def hold(session: Evictable) -> None:
            self._opening -= 1
            held.append(session)
            self._open.append(session)
            self._look_after(session, self._idle_seconds)

        try:
            yield hold
        finally:
            if held:
                self._forget(held[0])
            else:
                self._opening -= 1

    async def _make_room(self) -> None:
        while self._most is not None and len(self._open) + self._opening >= self._most:
            idle = [(session.idle_since, n) for n, session in enumerate(self._open) if session.idle_since is not None]
            if not idle:
                raise SandboxUnavailable(
                    f"{self._most} sessions are open, and none of them is idle",
                    hint="leave one, or raise max_sessions",
                )
            oldest = self._open[min(idle)[1]]
            self._forget(oldest)
            await oldest.evict(f"it was evicted to make room: max_sessions is {self._most}")

    def _look_after(self, session: Evictable, seconds: float | None) -> None:
        if seconds is not None:
            loop = asyncio.get_running_loop()
            self._timers[id(session)] = loop.call_later(seconds, self._look, session)

    def _look(self, session: Evictable) -> None:
        assert self._idle_seconds is not None
        since = session.idle_since
        left = self._idle_seconds if since is None else since + self._idle_seconds - asyncio.get_running_loop().time()
        if left > 0:
            self._look_after(session, left)
            return
        self._forget(session)
        evicting = asyncio.create_task(
            session.evict(f"it was evicted after {self._idle_seconds:g} s without an action")
        )
        self._evicting.add(evicting)
        evicting.add_done_callback(self._evicting.discard)

    def _forget(self, session: Evictable) -> None:
        if session in self._open:
            self._open.remove(session)
        timer = self._timers.pop(id(session), None)
        if timer is not None:
            timer.cancel()
