"""Files the code left behind, read through a directory handle that follows nothing. The code may be hostile."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import stat
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from hatchway.core.errors import CodeLimitError, SandboxCrashed
from hatchway.core.limits import Limits
from hatchway.core.results import ExecFile
from hatchway.sandboxes.spool import SPOOLED_BYTES, SpooledFile

_OPENAT2 = 437
_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x01, 0x02, 0x04, 0x08
_NOTHING_FOLLOWED = struct.pack("=Q", _NO_XDEV | _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH)
MAX_DEPTH = 16
MAX_ENTRIES = 20_000
"""Directory entries looked at: more is nobody's honest output."""
CHUNK = 1 << 20

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


@dataclass(slots=True)
class OutputFolder:
    """The folder of one child: a handle that stays good when the child is dead. It is owned: `close` it."""

    fd: int
    place: str = "/output"
    """What the code calls it."""
    refused: list[str] | None = None
    """Given a list, why each thing that is no plain file with a plain name was left out; None makes names readable."""
    on_close: Callable[[], None] = lambda: None
    """Told once that it is no longer needed."""
    _is_read: bool = False
    _is_closing: bool = False
    _given: dict[str, tuple[int, int, int]] = field(default_factory=dict[str, tuple[int, int, int]])

    def staged(self, name: str, found: os.stat_result) -> None:
        """A file the host put there: it is collected only if the code changes it."""
        self._given[name] = _mark(found)

    def collect(self, limits: Limits) -> tuple[ExecFile, ...]:
        """The regular files that are new or changed since the last time, by name. Blocks: call it in a thread.

        Raises:
            CodeLimitError: There are more, or larger ones, than `limits` allow; it has those that were read.
            SandboxCrashed: The host has no room for them.
        """
        reading = _Reading(limits, self.place, self.refused, self._given)
        try:
            reading.walk(self.fd, "", 0)
        except OSError as e:
            reason = os.strerror(e.errno or 0)
            raise SandboxCrashed(f"{self.place} cannot be taken: {reason}", hint="see `df` and `ulimit -n`") from e
        return tuple(sorted(reading.files, key=lambda file: file.name))

    async def collected(self, limits: Limits) -> tuple[ExecFile, ...]:
        """As `GuestOutput` says; nothing once it is closed."""
        if self._is_closing or self.fd < 0:
            return ()
        self._is_read = True
        try:
            return await asyncio.to_thread(self.collect, limits)
        finally:
            self._is_read = False
            if self._is_closing:
                self.close()

    def close(self) -> None:
        """Let go, once nobody reads any more; the files are gone with the last handle. Legal twice."""
        self._is_closing = True
        if self._is_read or self.fd < 0:
            return
        os.close(self.fd)
        self.fd = -1
        self.on_close()


class _Reading:
    def __init__(
        self, limits: Limits, place: str, refused: list[str] | None, given: dict[str, tuple[int, int, int]]
    ) -> None:
        self._limits, self._place, self._refused = limits, place, refused
        self._given = given
        self._entries = 0
        self._bytes = 0
        self.files: list[ExecFile] = []

    def walk(self, folder: int, prefix: str, depth: int) -> None:
        for name in sorted(os.listdir(folder)):
            self._entries += 1
            if self._entries > MAX_ENTRIES:
                raise self._over("output_files", f"the code left more than {MAX_ENTRIES} entries in {self._place}")
            if self._refused is not None and not name.isprintable():
                self._refuse(prefix + name, "its name holds control characters or is not UTF-8")
                continue
            if (fd := _opened(folder, name)) is None:
                self._refuse(prefix + name, "it is a link, no file, or cannot be read")
                continue
            try:
                found = os.fstat(fd)
                if stat.S_ISDIR(found.st_mode) and depth < MAX_DEPTH:
                    self.walk(fd, f"{prefix}{name}/", depth + 1)
                elif stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
                    self._take(fd, prefix + name, found)
                else:
                    self._refuse(prefix + name, "it has a second name, or lies too deep")
            finally:
                os.close(fd)

    def _take(self, fd: int, name: str, found: os.stat_result) -> None:
        mark = _mark(found)
        name = name.encode("utf-8", "backslashreplace").decode()  # two names that are no text stay two
        if self._given.get(name) == mark:
            return
        if len(self.files) >= self._limits.output_files:
            raise self._over(
                "output_files", f"the code left more than {self._limits.output_files} files in {self._place}"
            )
        if found.st_size > self._limits.file_bytes:
            raise self._over(
                "file_bytes", f"{self._place}/{name} has {found.st_size} bytes, the limit is {self._limits.file_bytes}"
            )
        file = _taken(fd, name, found.st_size, self._limits.file_bytes)
        self._bytes += file.size
        if self._bytes > self._limits.disk_bytes:
            raise self._over(
                "disk_bytes", f"the files in {self._place} have more than {self._limits.disk_bytes} bytes together"
            )
        self._given[name] = mark
        self.files.append(file)

    def _refuse(self, name: str, why: str) -> None:
        if self._refused is not None and len(self._refused) < self._limits.output_files:
            self._refused.append(f"{name!r} is left out: {why}")

    def _over(self, limit: str, message: str) -> CodeLimitError:
        hint = f"raise Limits.{limit}, or let the code leave less"
        return CodeLimitError(message, limit=limit, files=self.files, hint=hint)


def _mark(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns


def _opened(folder: int, name: str) -> int | None:
    """The entry, opened for reading if it is a file or a directory; anything else is left alone."""
    try:
        kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
            return None
        return _openat2(folder, name)
    except OSError as e:
        if e.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise
        return None  # gone, replaced by a link, or made unreadable by the code: not ours to read


def _openat2(folder: int, name: str) -> int:
    # O_NONBLOCK: should a FIFO take the file's place after the look at it, the open must not hang
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY
    if sys.platform != "linux":
        return os.open(name, flags, dir_fd=folder)
    how = struct.pack("=QQ", flags, 0) + _NOTHING_FOLLOWED
    fd = int(_libc.syscall(ctypes.c_long(_OPENAT2), folder, os.fsencode(name), how, len(how)))
    if fd < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return fd


def _taken(fd: int, name: str, size: int, limit: int) -> ExecFile:
    """At most `limit` bytes: a live session's file may grow while it is read. A large one never is in memory whole."""
    if size > SPOOLED_BYTES:
        return SpooledFile(name, _parts(fd, limit))
    return ExecFile(name=name, content=b"".join(_parts(fd, min(limit, SPOOLED_BYTES))))


def _parts(fd: int, left: int) -> Iterator[bytes]:
    while left > 0 and (part := os.read(fd, min(CHUNK, left))):
        yield part
        left -= len(part)
