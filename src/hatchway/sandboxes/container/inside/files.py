"""Files the code left in a folder, handed out frame by frame. Nothing is followed; the code may still be running."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import Any

Marks = dict[bytes, tuple[int, int, int]]
Tell = Callable[[bytes, Any], None]
Send = Callable[[bytes, bytes], None]

MAX_DEPTH, MAX_ENTRIES = 16, 20000
CHUNK = 1 << 16


class Folder:
    """A folder that is handed out several times: what has not changed since is left out."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._given: Marks = {}

    def hand_out(self, wanted: dict[str, int], tell: Tell, send: Send) -> None:
        """Tell of each new file, then its bytes; past what is wanted say which limit was in the way."""
        over = ""
        try:
            root = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            tell(b"Z", {"over": ""})  # this container has no such folder
            return
        try:
            _Walk(self._given, wanted, tell, send).folder(root, b"", 0)
        except Over as e:
            over = str(e)
        finally:
            os.close(root)
        tell(b"Z", {"over": over})


class Over(Exception):
    """There is more than the host wants; names the limit."""


class _Walk:
    def __init__(self, given: Marks, wanted: dict[str, int], tell: Tell, send: Send) -> None:
        self._given = given
        self._wanted = wanted
        self._tell = tell
        self._send = send
        self._entries = self._files = self._bytes = 0

    def folder(self, fd: int, prefix: bytes, depth: int) -> None:
        for name in sorted(os.listdir(fd)):
            self._entries += 1
            if self._entries > MAX_ENTRIES:
                raise Over("output_files")
            try:
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
                entry = os.open(name, flags, dir_fd=fd)
            except OSError:
                continue  # a link, a socket, or closed by the code itself
            try:
                found = os.fstat(entry)
                path = prefix + os.fsencode(name)
                if stat.S_ISDIR(found.st_mode) and depth < MAX_DEPTH:
                    self.folder(entry, path + b"/", depth + 1)
                elif stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
                    self._file(entry, path, found)
            finally:
                os.close(entry)

    def _file(self, fd: int, path: bytes, found: os.stat_result) -> None:
        mark = (found.st_ino, found.st_size, found.st_mtime_ns)
        if self._given.get(path) == mark:
            return
        self._files += 1
        self._bytes += found.st_size
        for limit, value in (
            ("output_files", self._files),
            ("file_bytes", found.st_size),
            ("disk_bytes", self._bytes),
        ):
            if value > self._wanted[limit]:
                raise Over(limit)
        self._given[path] = mark
        self._tell(b"F", {"name": path.decode("utf-8", "replace"), "size": found.st_size})
        left = found.st_size  # no more: a live file may grow while it is read
        while left > 0:
            data = os.read(fd, min(CHUNK, left))
            if not data:
                break
            left -= len(data)
            self._send(b"D", data)
