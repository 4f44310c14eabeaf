"""What code asks for by paths: turned into handles, whose real names are held against the rules."""

from __future__ import annotations

import ctypes
import errno
import os

from . import handles, notify
from .denied import Denied

_FDCWD = -100
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Guarded:
    """The rules of one warden, and where its code asks."""

    def __init__(self, listener: int, deny_read: Denied, deny_write: Denied, roots: list[str]) -> None:
        self.listener = listener
        self._no_read, self._no_write = deny_read, deny_write
        self._roots = sorted((root.rstrip("/") for root in roots), key=len, reverse=True)

    def check_open(self, real: str, flags: int) -> None:
        """Raises PermissionError where a rule denies to open it so."""
        if self._no_read.covers(real) or (flags & _WRITES and self._no_write.covers(real)):
            raise PermissionError(errno.EACCES, "denied by a path rule")
        if handles.is_own(real):
            raise PermissionError(errno.EACCES, "the warden's own")

    def check_entry(self, real: str, *, is_moved: bool = False, is_brought: bool = False) -> None:
        """Raises PermissionError where a rule denies to change what is called so, or to give it another name.

        Brought is what may have something in it already, or lead there: it would be behind a denied name at once.
        """
        if self._no_write.covers(real) or ((is_moved or is_brought) and self._no_write.guards(real)):
            raise PermissionError(errno.EACCES, "denied by a path rule")
        if is_moved and (self._no_read.covers(real) or self._no_read.guards(real)):
            raise PermissionError(errno.EACCES, "denied by a path rule")

    def check_same_root(self, source: str, target: str) -> None:
        """Raises OSError, as between two file systems, where a move would leave the patterns of one root behind."""
        if self._root_of(source) != self._root_of(target):
            raise OSError(errno.EXDEV, "another root")

    def _root_of(self, real: str) -> str:
        return next((root for root in self._roots if real.startswith(root + "/")), "")

    def path(self, asked: notify.Asked, directory: int | None, address: int) -> tuple[int | None, str]:
        """The text of a path and a handle of the directory it starts in."""
        path = notify.text_at(asked.pid, address)
        if not path:
            raise FileNotFoundError(errno.ENOENT, "an empty path")
        where = _FDCWD if directory is None else ctypes.c_int(directory & 0xFFFFFFFF).value
        base = None
        if not path.startswith("/"):
            start = "cwd" if where == _FDCWD else f"fd/{where}"
            base = os.open(f"/proc/{asked.pid}/{start}", os.O_PATH | os.O_CLOEXEC)
        if not notify.is_waiting(self.listener, asked):
            handles.close(base)
            raise OSError(errno.EINTR, "gone")
        return base, handles.of_asker(path, asked.pid)

    def entry(self, asked: notify.Asked, directory: int | None, address: int) -> tuple[int, str, str]:
        """A handle of the folder a path leads to, the last name, and the real path of both together."""
        base, path = self.path(asked, directory, address)
        try:
            return handles.entry_of(base, path)
        finally:
            handles.close(base)
