"""A pool of started containers that wait for work. Each serves one action, or one session, and is never shared."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import replace

from hatchway.core.errors import HatchwayError
from hatchway.sandboxes.container.engine import Engine
from hatchway.sandboxes.container.policy import ContainerPolicy
from hatchway.sandboxes.container.process import ContainerProcess
from hatchway.sandboxes.container.quota import with_quota
from hatchway.sandboxes.quota import Quota

HASH_SEED = "PYTHONHASHSEED"
STARTS = 4
"""Containers started at one time: an engine that is asked for more only gets slower."""


class Pool:
    """Containers of one policy, with spares of the quota that was last asked for.

    Args:
        engine: Who runs them.
        policy: What they may do.
        size: Spares kept.
        has_output: They have `/output`.
    """

    def __init__(self, engine: Engine, policy: ContainerPolicy, size: int, *, has_output: bool) -> None:
        self._engine, self._policy = engine, policy
        self._size, self._has_output = size, has_output
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = asyncio.Semaphore(STARTS)
        self._spares: deque[ContainerProcess] = deque()
        self._making: set[asyncio.Task[None]] = set()
        self._alive: set[ContainerProcess] = set()
        self._quota: Quota | None = None

    async def take(self, quota: Quota, hash_seed: str = "") -> ContainerProcess:
        """A container nobody has used, held to `quota`; others are started meanwhile.

        Args:
            quota: The limits it is born with.
            hash_seed: That of a recording made elsewhere; empty for the own one.

        Raises:
            SandboxUnavailable: There is no client, no engine, no permission or no image.
            SandboxCrashed: The engine did not start it.
        """
        self._settle_in()
        if hash_seed not in ("", self._policy.environment.get(HASH_SEED)):
            return await self._make(quota, hash_seed)
        self._quota = quota
        container = self._spare(quota) or await self._make(quota)
        self._refill(quota)
        return container

    async def fill(self, quota: Quota) -> None:
        """Start the spares now, and wait for them.

        Raises:
            SandboxUnavailable, SandboxCrashed: As `take`.
        """
        self._settle_in()
        self._quota = quota
        await self._engine.check_image(self._policy.image)
        self._refill(quota)
        while self._making:
            await asyncio.wait(self._making)

    async def close(self) -> None:
        """Kill every container; none is left when this returns. Legal twice."""
        self._settle_in()
        making = self._making
        for task in making:
            task.cancel()
        if making:
            await asyncio.wait(making)
        self._spares.clear()
        for container in tuple(self._alive):
            container.kill()
        for container in tuple(self._alive):
            await container.wait_gone()
        self._alive.clear()

    def _settle_in(self) -> None:
        """What belongs to a closed loop is dead or dying: its pipes are closed."""
        self._alive = {each for each in self._alive if not each.is_stranded}
        if self._loop is not (loop := asyncio.get_running_loop()):
            self._loop, self._starting = loop, asyncio.Semaphore(STARTS)
            self._spares.clear()
            self._making = set()

    async def _make(self, quota: Quota, hash_seed: str = "") -> ContainerProcess:
        async with self._starting:
            await self._engine.sweep_once()
            await self._engine.check_image(self._policy.image)
            policy = with_quota(self._policy, quota, has_output=self._has_output)
            if hash_seed:
                policy = replace(policy, environment={**policy.environment, HASH_SEED: hash_seed})
            container = ContainerProcess(self._engine, policy, quota, has_output=self._has_output)
            await container.start()
        self._alive = {each for each in self._alive if not each.is_gone} | {container}
        return container

    def _spare(self, quota: Quota) -> ContainerProcess | None:
        while self._spares:
            container = self._spares.popleft()
            if not container.is_dead and container.quota == quota:
                return container
            container.kill()
        return None

    def _refill(self, quota: Quota) -> None:
        for _ in range(self._size - len(self._spares) - len(self._making)):
            task = asyncio.create_task(self._add_spare(quota))
            self._making.add(task)
            task.add_done_callback(self._making.discard)

    async def _add_spare(self, quota: Quota) -> None:
        with suppress(HatchwayError):  # the next action that needs a container tells what is wrong
            container = await self._make(quota)
            if quota == self._quota:
                self._spares.append(container)
            else:
                container.kill()
