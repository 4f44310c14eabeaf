"""Uploads: mounted files brought to a vendor, each content once, with progress."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from hatchway.core.errors import SandboxUnavailable
from hatchway.core.events import AgentEvent
from hatchway.hosted.code import ContainerRef, Item
from hatchway.hosted.context import Turn
from hatchway.hosted.events import ContainerLost, UploadProgress
from hatchway.hosted.mounts import collect
from hatchway.hosted.provider_tool import ProviderTool
from hatchway.hosted.vendor import Vendor

T = TypeVar("T")


class Uploads:
    """Knows what a vendor has already, by digest.

    Args:
        vendor: Where files go.
        roots: Where they may come from.
    """

    def __init__(self, vendor: Vendor, roots: Sequence[Path]) -> None:
        self._vendor = vendor
        self._roots = tuple(roots)
        self._known: dict[str, str] = {}
        self._one_at_a_time = asyncio.Lock()

    async def bring(self, tool: ProviderTool[Any, Any, Any], turn: Turn, retries: int) -> list[Item]:
        """Upload what the tool mounts and have it where its code finds it; what must be said for it.

        Raises:
            InvalidSetting: A mount is not allowed, or a file is none the vendor takes. Nothing was uploaded.
            SandboxUnavailable, TransportError: The vendor does not take it now.
        """
        mounts = self._vendor.mounts(tool)
        if not mounts and not self._vendor.attached(tool):
            return []
        files = await asyncio.to_thread(collect, mounts, self._roots, self._vendor.takes)
        uploaded: dict[str, str] = {}
        async with self._one_at_a_time:  # two requests at once do not upload one file twice
            for number, file in enumerate(files, 1):
                is_there = file.digest in self._known
                if not is_there:
                    self._known[file.digest] = await self.asked(lambda file=file: self._vendor.upload(file), retries)
                uploaded[file.name] = self._known[file.digest]
                event: AgentEvent = UploadProgress(
                    file.name, size=len(file.content), done=number, total=len(files), reused=is_there
                )
                turn.event_bus.publish(replace(event, run_id=turn.run_id))
        return await self._place(tool, turn, uploaded, retries)

    async def _place(
        self, tool: ProviderTool[Any, Any, Any], turn: Turn, uploaded: dict[str, str], retries: int
    ) -> list[Item]:
        session, fixed = turn.session, self._vendor.fixed_container(tool)
        container = session.container
        if container is None and fixed is not None and fixed not in session.lost:
            container = ContainerRef(id=fixed)
        try:
            placed = await self.asked(lambda: self._vendor.place(tool, uploaded, container), retries)
        except SandboxUnavailable as e:
            cause = e.__cause__
            found = self._vendor.failure(cause, {}) if isinstance(cause, Exception) else None
            if container is None or found is None or found.kind != "gone":
                raise
            session.lost.add(container.id)
            turn.event_bus.publish(ContainerLost(container.id, reason=e.message, run_id=turn.run_id))
            placed = await self.asked(lambda: self._vendor.place(tool, uploaded, None), retries)
        session.container, session.placed = placed[0] or session.container, placed[1]
        return placed[2]

    async def asked(self, ask: Callable[[], Awaitable[T]], retries: int) -> T:
        """What the vendor gives; asked again when it is busy.

        Raises:
            InvalidSetting, SandboxUnavailable, TransportError: It refused.
        """
        for attempt in range(retries + 1):
            try:
                return await ask()
            except Exception as e:
                failure = self._vendor.failure(e, {})
                if failure is None:
                    raise
                if failure.kind != "busy" or attempt == retries:
                    raise failure.error(self._vendor.provider) from e
                await asyncio.sleep(failure.wait(attempt + 1))
        raise AssertionError("the loop above returns or raises")
