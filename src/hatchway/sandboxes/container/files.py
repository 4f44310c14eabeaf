"""Files that come out of a container, as the relay hands them out. The relay may have become the code's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress

from hatchway.core.errors import CodeLimitError
from hatchway.core.limits import Limits
from hatchway.core.results import ExecFile

MESSAGES = {
    "output_files": "the code left more than {} files in /output",
    "file_bytes": "a file in /output has more than {} bytes",
    "disk_bytes": "the files in /output have more than {} bytes together",
}

FILES_SECONDS = 10.0
"""Files of a live session that have not come after this are left where they are."""


class ReceivedFiles:
    """What one container handed out since it was last asked.

    Args:
        ask: Lets a live container hand out what is new; False when it is dead, and has done so.
    """

    def __init__(self, ask: Callable[[], bool]) -> None:
        self._ask = ask
        self._parts: list[tuple[str, bytearray]] = []
        self._left = 0
        self._bytes = 0
        self._over = ""
        self._limits = Limits()
        self._waiting: asyncio.Future[None] | None = None

    def wanted(self, limits: Limits) -> dict[str, int]:
        """What the relay is told: how much of it is taken."""
        self._limits = limits
        return {name: int(getattr(limits, name)) for name in MESSAGES}

    def take(self, kind: bytes, body: bytes) -> None:
        """One frame.

        Raises:
            ValueError: It makes no sense where it stands, or brings more than was wanted.
        """
        match kind:
            case b"F":
                self._begin(json.loads(body))
            case b"D":
                self._left -= len(body)
                self._bytes += len(body)
                if self._left < 0 or self._bytes > self._limits.disk_bytes:
                    raise ValueError("more bytes than were told")
                self._parts[-1][1].extend(body)
            case _:
                self._over = str(json.loads(body)["over"])
                if self._over and self._over not in MESSAGES:
                    raise ValueError("no such limit")
                self.end()

    def end(self) -> None:
        """Nothing more comes."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def collected(self, limits: Limits) -> tuple[ExecFile, ...]:
        """As `GuestOutput` says; the limits are those the container was told."""
        if self._ask():
            self._waiting = asyncio.get_running_loop().create_future()
            with suppress(TimeoutError):
                async with asyncio.timeout(FILES_SECONDS):
                    await self._waiting
        return self._taken()

    def close(self) -> None:
        """As `GuestOutput` says: they are gone with the container."""

    def _taken(self) -> tuple[ExecFile, ...]:
        parts, self._parts, self._bytes = self._parts, [], 0
        files = [ExecFile(name=name, content=bytes(content)) for name, content in parts]
        over, self._over = self._over, ""
        if over:
            message = MESSAGES[over].format(getattr(self._limits, over))
            raise CodeLimitError(
                message, limit=over, files=files, hint=f"raise Limits.{over}, or let the code leave less"
            )
        return tuple(sorted(files, key=lambda file: file.name))

    def _begin(self, told: Mapping[str, object]) -> None:
        name, size = told["name"], told["size"]
        if not isinstance(name, str) or not isinstance(size, int) or size < 0 or size > self._limits.file_bytes:
            raise ValueError("no file is like that")
        if not name or name.startswith("/") or any(part in ("", ".", "..") for part in name.split("/")):
            raise ValueError("no file has such a name")
        if len(self._parts) >= self._limits.output_files:
            raise ValueError("more files than were wanted")
        self._parts.append((name.encode("utf-8", "replace").decode(), bytearray()))
        self._left = size
