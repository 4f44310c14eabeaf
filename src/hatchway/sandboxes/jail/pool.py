"""A pool of sealed processes that wait for work, so that an action starts in a warm one at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from hatchway.core.errors import HatchwayError, SandboxCrashed
from hatchway.sandboxes.jail.jailed_process import JailedProcess, TierMaker
from hatchway.sandboxes.quota import Quota
from hatchway.sandboxes.shortage import no_process

BREATH_SECONDS = 0.003
"""For each spare that is left, an action has so long to itself before successors are made: most are done by then, and
so is what their caller does next. Where actions come faster than that, spares are made at once."""


class Pool:
    """Spares of one tier, all of the quota that was last asked for.

    Args:
        maker: Who makes the processes.
        size: Spares kept.
    """

    def __init__(self, maker: TierMaker, size: int) -> None:
        self._maker = maker
        self._size = size
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = asyncio.Lock()
        self._spares: deque[JailedProcess] = deque()
        self._making: set[asyncio.Task[None]] = set()
        self._refilling: set[asyncio.Task[None]] = set()
        self._quota: Quota | None = None

    async def take(self, quota: Quota) -> JailedProcess:
        """A fresh process that is held to `quota`.

        Raises:
            SandboxUnavailable: The wall cannot be built here.
            SandboxCrashed: It died while starting, or the machine has no room for it.
        """
        try:
            if not self._maker.is_alive:
                await self._start()
            self._quota = quota
            process = self._spare(quota) or await self._made(quota)
        except OSError as e:
            raise no_process(e) from e
        self._refill_soon(quota)
        return process

    async def close(self) -> None:
        """Kill every process; nothing is left when this returns. Legal twice."""
        self._quota = None  # no spare is made while others are ended
        under_way = self._making | self._refilling
        self._making, self._refilling = set(), set()
        for task in under_way:
            if not task.get_loop().is_closed():  # with its loop the task ended too
                task.cancel()
        self._spares.clear()
        await self._maker.close()

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._starting = loop, asyncio.Lock()
        async with self._starting:
            if not self._maker.is_alive:
                await self.close()
                await self._maker.start()

    async def _made(self, quota: Quota) -> JailedProcess:
        """A new one, also if whoever makes them is found dead only now."""
        try:
            return await self._maker.make(quota)
        except SandboxCrashed:
            if self._maker.is_alive:
                raise
        await self._start()
        return await self._maker.make(quota)

    def _spare(self, quota: Quota) -> JailedProcess | None:
        while self._spares:
            process = self._spares.popleft()
            if process.quota == quota and process.is_fresh:
                return process
            process.kill()
        return None

    def _refill_soon(self, quota: Quota) -> None:
        if (taker := asyncio.current_task()) is not None and taker.cancelling():
            return  # perhaps the loop ends: it waits for the tasks it has cancelled, and for no later ones
        if self._spares:
            _kept(self._refilled(quota, len(self._spares) * BREATH_SECONDS), self._refilling)
        else:
            self._refill(quota)

    async def _refilled(self, quota: Quota, seconds: float) -> None:
        await asyncio.sleep(seconds)  # no timer of the loop: it would make tasks while the loop ends
        self._refill(quota)

    def _refill(self, quota: Quota) -> None:
        if quota != self._quota or not self._maker.is_alive:
            return
        for _ in range(self._size - len(self._spares) - len(self._making)):
            _kept(self._add_spare(quota), self._making)

    async def _add_spare(self, quota: Quota) -> None:
        with suppress(HatchwayError, OSError):  # the next action that needs a process tells what is wrong
            process = await self._maker.make(quota)
            if quota == self._quota:
                self._spares.append(process)
            else:
                process.kill()


def _kept(work: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> None:
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
