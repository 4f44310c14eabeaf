"""Files opened in the code's place, and handed over."""

from __future__ import annotations

import errno
import os
import stat
import threading

from . import handles, notify
from .guarded import Guarded

WAITS = 16  # named pipes whose opening waits for the other end


class Opening:
    """Answers those who want to open a file."""

    def __init__(self, guarded: Guarded) -> None:
        self._guarded = guarded
        self._waits = threading.Semaphore(WAITS)

    def open(self, asked: notify.Asked) -> None:
        """open, openat, creat."""
        values = asked.arguments
        base, path = self._guarded.path(
            asked, *((values[0], values[1]) if asked.name == "openat" else (None, values[0]))
        )
        flags, mode = _flags(asked)
        if flags & os.O_PATH:  # it opens nothing: who uses the handle is asked again. And none can be handed over.
            handles.close(base)
            notify.let_through(self._guarded.listener, asked)
            return
        try:
            fd = self._opened(asked, base, path, flags, mode)
        finally:
            handles.close(base)
        if fd is not None:
            notify.answer_with(self._guarded.listener, asked, fd, flags)
            os.close(fd)

    def _opened(self, asked: notify.Asked, base: int | None, path: str, flags: int, mode: int) -> int | None:
        """The file; None when somebody waits for it and will answer."""
        is_new = flags & os.O_CREAT and flags & os.O_EXCL
        try:
            handle = handles.handle_of(path, base, is_followed=not (is_new or flags & os.O_NOFOLLOW))
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
            return self._created(asked, base, path, flags, mode)
        try:
            if is_new:
                raise FileExistsError(errno.EEXIST, path)
            self._guarded.check_open(handles.real_name(handle), flags)
            kind = os.fstat(handle).st_mode
            if stat.S_ISLNK(kind):
                raise OSError(errno.ELOOP, path)
            if stat.S_ISFIFO(kind) and not flags & os.O_NONBLOCK:
                return self._opened_later(asked, os.dup(handle), flags)
            return handles.reopened(
                handle, flags & ~(os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW), handles.masked(asked.pid, mode)
            )
        finally:
            os.close(handle)

    def _created(self, asked: notify.Asked, base: int | None, path: str, flags: int, mode: int) -> int:
        parent, name, real = handles.entry_of(base, path)
        try:
            self._guarded.check_open(real, flags)
            return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, handles.masked(asked.pid, mode), dir_fd=parent)
        finally:
            os.close(parent)

    def _opened_later(self, asked: notify.Asked, handle: int, flags: int) -> None:
        """A named pipe opens when its other end does: that may need another answer of ours first."""
        if not self._waits.acquire(blocking=False):
            os.close(handle)
            raise OSError(errno.EAGAIN, "too many pipes wait")

        def wait() -> None:
            try:
                fd = handles.reopened(handle, flags & ~(os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW))
                notify.answer_with(self._guarded.listener, asked, fd, flags)
                os.close(fd)
            except OSError as e:
                notify.answer(self._guarded.listener, asked, e.errno or errno.EACCES)
            finally:
                os.close(handle)
                self._waits.release()

        threading.Thread(target=wait, daemon=True).start()


def _flags(asked: notify.Asked) -> tuple[int, int]:
    values = asked.arguments
    if asked.name == "creat":
        return os.O_CREAT | os.O_WRONLY | os.O_TRUNC, values[1] & 0o7777
    at = 2 if asked.name == "openat" else 1
    return values[at] & 0xFFFFFFFF, values[at + 1] & 0o7777
