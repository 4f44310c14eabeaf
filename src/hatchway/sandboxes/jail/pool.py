"""A pool of sealed children that wait for work, so that an action starts in a warm one at once."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress

from hatchway.core.errors import HatchwayError
from hatchway.sandboxes.jail.child import SealedChild
from hatchway.sandboxes.jail.launch import Launch, Quota
from hatchway.sandboxes.jail.zygote import Zygote


class Pool:
    """The zygote of one launch description and its children, on one event loop at a time.

    Args:
        launch: The jail.
        size: Spare children kept.
    """

    def __init__(self, launch: Launch, size: int) -> None:
        self.launch = launch
        self._size = size
        self._zygote: Zygote | None = None
        self._starting: asyncio.Lock | None = None
        self._spares: deque[SealedChild] = deque()
        self._making: set[asyncio.Task[None]] = set()
        self._taken: set[SealedChild] = set()
        self._quota: Quota | None = None

    async def take(self, quota: Quota) -> SealedChild:
        """A fresh child that is held to `quota`.

        Raises:
            SandboxUnavailable: The jail cannot be built here.
            SandboxCrashed: It died while starting.
        """
        zygote = self._zygote
        if zygote is None or not zygote.is_alive or zygote.loop is not asyncio.get_running_loop():
            zygote = await self._started()
        child = self._spare(quota) or await SealedChild.spawned(zygote, quota)
        self._taken.add(child)
        self._quota = quota
        self._refill(zygote, quota)
        return child

    async def close(self) -> None:
        """Kill every child and the zygote; nothing is left when this returns. Legal twice."""
        making, self._making = self._making, set()
        for task in making:
            task.cancel()
        zygote, self._zygote = self._zygote, None
        self._spares.clear()
        if zygote is not None:
            await zygote.close()
        for child in self._taken:
            if child.output is not None:
                child.output.close()
        self._taken.clear()

    async def _started(self) -> Zygote:
        loop = asyncio.get_running_loop()
        if self._starting is None or (self._zygote is not None and self._zygote.loop is not loop):
            self._starting = asyncio.Lock()
        async with self._starting:
            if self._zygote is not None and self._zygote.is_alive and self._zygote.loop is loop:
                return self._zygote
            await self.close()
            self._zygote = await Zygote.start(self.launch)
            return self._zygote

    def _spare(self, quota: Quota) -> SealedChild | None:
        while self._spares:
            child = self._spares.popleft()
            if not child.is_dead and child.quota == quota:
                return child
            child.kill()
        return None

    def _refill(self, zygote: Zygote, quota: Quota) -> None:
        self._taken = {child for child in self._taken if not child.is_dead or child.has_output}
        for _ in range(self._size - len(self._spares) - len(self._making)):
            task = asyncio.create_task(self._add_spare(zygote, quota))
            self._making.add(task)
            task.add_done_callback(self._making.discard)

    async def _add_spare(self, zygote: Zygote, quota: Quota) -> None:
        with suppress(HatchwayError):  # the next action that needs a child tells what is wrong
            child = await SealedChild.spawned(zygote, quota)
            if zygote is self._zygote and quota == self._quota:
                self._spares.append(child)
            else:
                child.kill()
