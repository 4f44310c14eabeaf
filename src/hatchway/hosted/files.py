"""HostedFiles: the files at a vendor. What its code made comes here, what was brought there is deleted."""

from __future__ import annotations

import asyncio
import os
from abc import ABC
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from hatchway.core.errors import InvalidSetting, TransportError
from hatchway.hosted.code import FileRef, Provider, file_ref
from hatchway.hosted.downloads import save_all, write_all
from hatchway.hosted.reply import HostedReply
from hatchway.hosted.uploads import Uploads
from hatchway.hosted.vendor import Vendor


class HostedFiles(ABC):
    """The part of an adapter that is about files at its vendor."""

    provider: ClassVar[Provider]
    vendor: Vendor
    uploads: Uploads
    deadline: float | None
    """Seconds a file may take; None for no such limit."""

    async def download(self, citation: FileRef | Mapping[str, Any] | Any) -> bytes:
        """A file the vendor's code made.

        Args:
            citation: Of `HostedReply.citations`; or the vendor's own, as JSON or as an object of its SDK.

        Raises:
            InvalidSetting: It is another vendor's, names no file, or is not there.
            SandboxUnavailable, TransportError: Its container is gone, or the vendor refuses or cannot be reached.
        """
        file = file_ref(citation, self.provider)
        if file.provider != self.provider:
            raise InvalidSetting(
                f"the file {file.file_id} is at {file.provider}, this adapter speaks with {self.provider}",
                hint=f"download it with the adapter of {file.provider}",
            )
        try:
            async with asyncio.timeout(self.deadline):
                return await self.uploads.asked(lambda: self.vendor.download(file))
        except TimeoutError:
            raise TransportError(
                f"{self.provider}: {file.file_id} was not there after {self.deadline} s",
                hint="raise the deadline, or download it again",
            ) from None

    async def download_all(self, reply: HostedReply | Iterable[Any], folder: str | os.PathLike[str]) -> dict[str, Path]:
        """All files of a reply, or those some citations name, in a folder, under names that cannot leave it.

        Returns:
            Where each was written, by file id; a file of code that ran here by its name.
        """
        here = write_all(reply.files, folder) if isinstance(reply, HostedReply) else {}
        every = reply.files_made if isinstance(reply, HostedReply) else reply
        files = [await self.named(file_ref(each, self.provider)) for each in every]
        return here | await save_all(files, folder, self.download)

    async def named(self, file: FileRef) -> FileRef:
        """The file with the name its code gave it, asked for where the answer does not tell it."""
        return await self.uploads.asked(lambda: self.vendor.named(file))

    async def delete_uploads(self) -> int:
        """Delete at the vendor what this adapter uploaded, and the containers it made for it; how many of both.

        They stay there otherwise, to be used again by the next request. A conversation that was given files cannot go
        on without them at Anthropic; where it is asked to, they are uploaded once more.

        Raises:
            InvalidSetting: The vendor refuses to delete some of it; all else is deleted.
            SandboxUnavailable, TransportError: The vendor cannot be asked; what is left is deleted by the next call.
        """
        return await self.uploads.delete()
