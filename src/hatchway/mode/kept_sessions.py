"""Kept sessions: by name, bounded in number, each used by one action at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from hatchway.core.errors import SandboxUnavailable
from hatchway.mode.file_exchange import FileExchange
from hatchway.mode.mode import CodeMode
from hatchway.mode.session import ModeSession


@dataclass(slots=True, eq=False)
class KeptSession:
    """A session and who uses it."""

    session: ModeSession
    closing: AsyncExitStack
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    files: FileExchange | None = None
    """Its working directory, once somebody asked for it."""
    users: int = 0
    is_lost: bool = False
    """Its interpreter is dead or not to be trusted: nobody gets it any more."""


class KeptSessions:
    """Kept interpreters by name. Past `most`, the one that was used longest ago is closed.

    Args:
        mode: Where they are opened.
        most: How many are kept.
        session_id: The id in the journal that a name stands for: one that was closed is had again from there.
    """

    def __init__(self, mode: CodeMode, most: int, *, session_id: Callable[[str], str] | None = None) -> None:
        self._mode, self._most = mode, most
        self._session_id = session_id
        self._kept: dict[str, KeptSession] = {}
        self._opening = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    @asynccontextmanager
    async def use(self, name: str) -> AsyncGenerator[KeptSession]:
        """The session of this name, opened if there is none; others that want it wait.

        Raises:
            SandboxUnavailable: As many as may be kept are in use, or the sandbox cannot open one.
        """
        kept = await self._taken(name)
        try:
            yield kept
        finally:
            kept.turn.release()
            await self._left(name, kept)

    async def close(self, name: str) -> None:
        """Close one, if it is there and nobody uses it."""
        async with self._opening:
            kept = self._kept.get(name)
            if kept is not None and not kept.users:
                del self._kept[name]
                await kept.closing.aclose()

    async def aclose(self) -> None:
        """Close them all. Legal twice."""
        while self._kept:
            await self._kept.popitem()[1].closing.aclose()

    async def _taken(self, name: str) -> KeptSession:
        """The session, for one user: whoever waited for one that was lost meanwhile gets another."""
        while True:
            async with self._opening:
                kept = self._kept.pop(name, None) or await self._opened(name)
                self._kept[name] = kept  # the last one of the dict is the last one used
                kept.users += 1
            try:
                await kept.turn.acquire()
            except BaseException:
                await self._left(name, kept)
                raise
            if not kept.is_lost:
                return kept
            kept.turn.release()
            await self._left(name, kept)

    async def _left(self, name: str, kept: KeptSession) -> None:
        kept.users -= 1
        if kept.is_lost and self._kept.get(name) is kept:
            del self._kept[name]
        if kept.is_lost and not kept.users:
            await kept.closing.aclose()

    async def _opened(self, name: str) -> KeptSession:
        if len(self._kept) >= self._most:
            idle = next((name for name, kept in self._kept.items() if not kept.users), None)
            if idle is None:
                raise SandboxUnavailable(
                    f"all {self._most} sessions are in use", hint="wait for one to end, or raise max_sessions"
                )
            await self._kept.pop(idle).closing.aclose()
        closing = AsyncExitStack()
        if self._session_id is None:
            return KeptSession(await closing.enter_async_context(self._mode.session()), closing)
        known = self._session_id(name)
        rows = await asyncio.to_thread(partial(self._mode.journal.runs, session_id=known, limit=1))
        opening = self._mode.session(session_id=known, is_new=not rows)
        return KeptSession(await closing.enter_async_context(opening), closing)
