"""Large files on their way out of a sandbox: kept on disk without a name, never whole in memory."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterable
from typing import BinaryIO

from hatchway.core.results import ExecFile, guessed_type

SPOOLED_BYTES = 1 << 20
"""A file past this size goes to disk instead of memory."""


class SpooledFile(ExecFile):
    """A file whose content lies in an unnamed file of the host's temporary folder, gone with the last reference.

    Args:
        name: As `ExecFile.name`.
        parts: The content, piece by piece.
    """

    __slots__ = ("_bytes", "_store")

    def __init__(self, name: str, parts: Iterable[bytes]) -> None:
        with tempfile.TemporaryFile(prefix="hatchway-") as file:
            written = sum(file.write(part) for part in parts)
            file.flush()
            store = _Store(os.dup(file.fileno()))
        for field, value in (("name", name), ("mime_type", guessed_type(name)), ("_store", store), ("_bytes", written)):
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"SpooledFile(name={self.name!r}, size={self._bytes}, mime_type={self.mime_type!r})"

    @property
    def content(self) -> bytes:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The whole file, read from disk now."""
        with self.open() as stream:
            return stream.read()

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._bytes

    def open(self) -> BinaryIO:
        """A stream of its own: several can be read at once."""
        return io.BufferedReader(_Reader(self._store))


class _Store:
    """A descriptor that is closed with its last reader."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        os.close(self.fd)


class _Reader(io.RawIOBase):
    """Reads by position, so that readers of one file do not disturb each other."""

    def __init__(self, store: _Store) -> None:
        self._store = store
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: os.fstat(self._store.fd).st_size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        count = os.preadv(self._store.fd, [buffer], self._at)
        self._at += count
        return count
