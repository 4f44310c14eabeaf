"""Uploads: what a vendor has of ours. Each content is brought once, with progress; what nobody uses is deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from hatchway.core.errors import HatchwayError, InvalidSetting
from hatchway.core.events import AgentEvent
from hatchway.hosted.code import ContainerRef
from hatchway.hosted.context import Turn
from hatchway.hosted.events import UploadProgress
from hatchway.hosted.failures import Failure
from hatchway.hosted.mounts import LocalFile
from hatchway.hosted.provider_tool import ProviderTool
from hatchway.hosted.vendor import Vendor

TIDY_SECONDS = 10.0
"""What cleaning up after a failure may take."""
T = TypeVar("T")


class Uploads:
    """Knows what a vendor has already, by digest, and the containers made for it.

    Args:
        vendor: Where files go.
        retries: How often a busy vendor is asked again.
    """

    def __init__(self, vendor: Vendor, retries: int) -> None:
        self._vendor = vendor
        self._retries = retries
        self._known: dict[str, str] = {}
        self._made: set[str] = set()
        """Containers made for files."""
        self._one_at_a_time = asyncio.Lock()

    async def upload(self, files: Sequence[LocalFile], turn: Turn) -> dict[str, str]:
        """Have the files at the vendor; their ids there, by name.

        Raises:
            InvalidSetting, SandboxUnavailable, TransportError: The vendor does not take one of them.
        """
        uploaded: dict[str, str] = {}
        async with self._one_at_a_time:  # two requests at once do not upload one file twice
            for number, file in enumerate(files, 1):
                is_there = file.digest in self._known
                if not is_there:
                    self._known[file.digest] = await self.asked(lambda file=file: self._vendor.upload(file))
                uploaded[file.name] = self._known[file.digest]
                event: AgentEvent = UploadProgress(
                    file.name, size=len(file.content), done=number, total=len(files), reused=is_there
                )
                turn.event_bus.publish(replace(event, run_id=turn.run_id))
        return uploaded

    async def make(self, tool: ProviderTool[Any, Any, Any]) -> ContainerRef | None:
        """A new container for files; None where the vendor makes it with the request.

        Raises:
            InvalidSetting, SandboxUnavailable, TransportError: It refused.
        """
        if (container := await self.asked(lambda: self._vendor.made(tool))) is not None:
            self._made.add(container.id)
        return container

    async def delete(self) -> int:
        """Delete at the vendor what was brought there, and the containers made for it; how many of both there were.

        Raises:
            SandboxUnavailable, TransportError: It cannot be asked; what is left is deleted by the next call.
        """
        async with self._one_at_a_time:
            files, containers = list(self._known.items()), list(self._made)
            for digest, file_id in files:
                await self._deleted(lambda file_id=file_id: self._vendor.discard(file_id))
                self._known.pop(digest, None)
            for container_id in containers:
                await self._deleted(lambda container_id=container_id: self._vendor.unmade(container_id))
                self._made.discard(container_id)
            return len(files) + len(containers)

    def forget(self, file_ids: Set[str]) -> None:
        """The vendor has these no more: what was in them is uploaded anew when it is wanted."""
        self._known = {digest: known for digest, known in self._known.items() if known not in file_ids}

    async def tidy(self, refused: Set[str], made: ContainerRef | None) -> None:
        """Leave nothing behind that nobody uses; what cannot be deleted now is let be.

        Args:
            refused: Ids of files the vendor would refuse again.
            made: A container made in vain.
        """
        if made is not None:
            self._made.discard(made.id)
        self.forget(refused)
        with suppress(Exception):  # the error under way is the one to tell
            async with asyncio.timeout(TIDY_SECONDS):
                for file_id in sorted(refused):
                    await self._vendor.discard(file_id)
                if made is not None:
                    await self._vendor.unmade(made.id)

    def failure(self, error: HatchwayError) -> Failure | None:
        """What an error that `asked` raised means; None: it is not of the vendor's SDK."""
        cause = error.__cause__
        return self._vendor.failure(cause, {}) if isinstance(cause, Exception) else None

    def missed(self, error: HatchwayError, file_ids: Iterable[str]) -> set[str]:
        """Those of the files an error of the vendor says it does not have."""
        found = self.failure(error)
        return set() if found is None else found.misses(file_ids)

    async def asked(self, ask: Callable[[], Awaitable[T]]) -> T:
        """What the vendor gives; asked again when it is busy.

        Raises:
            InvalidSetting, SandboxUnavailable, TransportError: It refused.
        """
        for attempt in range(self._retries + 1):
            try:
                return await ask()
            except Exception as e:
                failure = self._vendor.failure(e, {})
                if failure is None:
                    raise
                if not failure.is_passing(attempt + 1, self._retries):
                    raise failure.error(self._vendor.provider) from e
                await asyncio.sleep(failure.wait(attempt + 1))
        raise AssertionError("the loop above returns or raises")

    async def _deleted(self, delete: Callable[[], Awaitable[None]]) -> None:
        with suppress(InvalidSetting):  # it is not there any more
            await self.asked(delete)
