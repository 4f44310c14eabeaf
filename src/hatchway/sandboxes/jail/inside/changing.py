"""Names changed in the code's place: moved, linked, removed, made."""

from __future__ import annotations

import ctypes
import errno
import os
import stat

from . import handles, notify
from .guarded import Guarded

_REMOVEDIR, _FOLLOW = 0x200, 0x400

_libc = ctypes.CDLL(None, use_errno=True)


class Changing:
    """Answers those who want to change what a folder holds."""

    def __init__(self, guarded: Guarded) -> None:
        self._guarded = guarded

    def rename(self, asked: notify.Asked) -> None:
        """rename, renameat, renameat2."""
        values, flags = asked.arguments, 0
        if asked.name == "rename":
            pairs = ((None, values[0]), (None, values[1]))
        else:
            pairs = ((values[0], values[1]), (values[2], values[3]))
            flags = values[4] & 0xFFFFFFFF if asked.name == "renameat2" else 0
        (old, old_name, source), (new, new_name, target) = (self._guarded.entry(asked, *pair) for pair in pairs)
        try:
            self._guarded.check_entry(source, is_moved=True)
            self._guarded.check_entry(target, is_moved=bool(flags & 2), is_brought=True)  # 2: both are moved
            self._guarded.check_same_root(source, target)
            done = _libc.renameat2(old, os.fsencode(old_name), new, os.fsencode(new_name), ctypes.c_uint(flags))
            _raise_if(done)
        finally:
            os.close(old)
            os.close(new)
        notify.answer(self._guarded.listener, asked, 0)

    def link(self, asked: notify.Asked) -> None:
        """link, linkat."""
        values = asked.arguments
        is_at = asked.name == "linkat"
        base, path = self._guarded.path(asked, *((values[0], values[1]) if is_at else (None, values[0])))
        parent, name, target = self._guarded.entry(asked, *((values[2], values[3]) if is_at else (None, values[1])))
        handle = None
        try:
            handle = handles.handle_of(path, base, is_followed=bool(is_at and values[4] & _FOLLOW))
            self._guarded.check_entry(handles.real_name(handle), is_moved=True)
            self._guarded.check_entry(target)
            os.link(f"/proc/self/fd/{handle}", name, dst_dir_fd=parent, follow_symlinks=True)
        finally:
            for fd in (base, parent, handle):
                handles.close(fd)
        notify.answer(self._guarded.listener, asked, 0)

    def change(self, asked: notify.Asked) -> None:
        """Whatever takes one path and makes or removes what it names, or cuts it."""
        values = asked.arguments
        if asked.name == "truncate":
            self._truncate(asked)
            return
        at = 1 if asked.name.startswith("symlink") else 0
        is_at = asked.name.endswith("at")
        pair = (values[at], values[at + 1]) if is_at else (None, values[at])
        rest = values[at + 1 + is_at :]
        parent, name, real = self._guarded.entry(asked, *pair)
        try:
            self._guarded.check_entry(real, is_brought=asked.name.startswith("symlink"))
            self._done(asked, parent, name, rest)
        finally:
            os.close(parent)
        notify.answer(self._guarded.listener, asked, 0)

    def _done(self, asked: notify.Asked, parent: int, name: str, rest: tuple[int, ...]) -> None:
        kind = asked.name[:-2] if asked.name.endswith("at") else asked.name
        if kind == "rmdir" or (kind == "unlink" and asked.name.endswith("at") and rest[0] & _REMOVEDIR):
            os.rmdir(name, dir_fd=parent)
        elif kind == "unlink":
            os.unlink(name, dir_fd=parent)
        elif kind == "mkdir":
            os.mkdir(name, handles.masked(asked.pid, rest[0] & 0o7777), dir_fd=parent)
        elif kind == "mknod":
            if not stat.S_ISFIFO(rest[0] & 0xFFFF):
                raise PermissionError(errno.EPERM, "no devices")
            os.mkfifo(name, handles.masked(asked.pid, rest[0] & 0o7777), dir_fd=parent)
        else:
            os.symlink(notify.text_at(asked.pid, asked.arguments[0]), name, dir_fd=parent)

    def _truncate(self, asked: notify.Asked) -> None:
        base, path = self._guarded.path(asked, None, asked.arguments[0])
        try:
            handle = handles.handle_of(path, base, is_followed=True)
        finally:
            handles.close(base)
        try:
            self._guarded.check_open(handles.real_name(handle), os.O_WRONLY)
            os.truncate(f"/proc/self/fd/{handle}", asked.arguments[1])
        finally:
            os.close(handle)
        notify.answer(self._guarded.listener, asked, 0)


def _raise_if(failed: int) -> None:
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
