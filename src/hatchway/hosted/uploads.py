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
        self._refused: set[str] = set()
        """Files the vendor would refuse again, as long as they are still there."""
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
            InvalidSetting: It refuses to delete some of it; all else is deleted.
            SandboxUnavailable, TransportError: It cannot be asked; what is left is deleted by the next call.
        """
        refusals: list[InvalidSetting] = []
        async with self._one_at_a_time:
            files = [*self._known.values(), *sorted(self._refused)]
            every = [
                *((each, self._vendor.discard) for each in files),
                *((each, self._vendor.unmade) for each in self._made),
            ]
            for its_id, delete in every:
                try:
                    await self._deleted(its_id, delete)
                except InvalidSetting as e:
                    refusals.append(e)
        if refusals:
            raise refusals[0]
        return len(every)

    def forget(self, file_ids: Set[str]) -> None:
        """The vendor has these no more: what was in them is uploaded anew when it is wanted."""
        self._known = {digest: known for digest, known in self._known.items() if known not in file_ids}

    async def tidy(self, refused: Set[str], made: ContainerRef | None) -> None:
        """Leave nothing behind that nobody uses; what cannot be deleted now is deleted by `delete`.

        Args:
            refused: Ids of files the vendor would refuse again.
            made: A container made in vain.
        """
        self.forget(refused)
        self._refused |= refused
        every = [(each, self._vendor.discard) for each in sorted(refused)]
        every += [(made.id, self._vendor.unmade)] if made is not None else []
        with suppress(TimeoutError):
            async with asyncio.timeout(TIDY_SECONDS):
                for its_id, delete in every:
                    with suppress(Exception):  # the error under way is the one to tell
                        await delete(its_id)
                        self._is_deleted(its_id)

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

    async def _deleted(self, its_id: str, delete: Callable[[str], Awaitable[None]]) -> None:
        try:
            await self.asked(lambda: delete(its_id))
        except HatchwayError as e:
            if not self._is_gone(e, its_id):
                raise
        self._is_deleted(its_id)

    def _is_gone(self, error: HatchwayError, its_id: str) -> bool:
        """Whether it is not there any more: a container goes by itself once it is idle."""
        found = self.failure(error)
        return found is not None and (
            found.kind == "gone" or found.status in (404, 410) or bool(found.misses([its_id]))
        )

    def _is_deleted(self, its_id: str) -> None:
        self.forget({its_id})
        self._refused.discard(its_id)
        self._made.discard(its_id)
