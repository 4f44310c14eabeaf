"""Modes, owners and times of files, changed in the code's place.

No wall stands before them: Landlock knows no such right, and where the code has the caller's own uid every file of the
caller's could be opened to the world by its path alone. They change below what the code may write to, and nowhere else.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Sequence

from . import handles, notify

NAMES = "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utimensat"
"""The calls that are asked for; older ones than these are refused, as no library uses them."""
_BY_HANDLE = ("fchmod", "fchown")
_NOFOLLOW, _EMPTY_PATH = 0x100, 0x1000
_OPENAT2 = 437
_BENEATH = struct.pack("=Q", 0x08 | 0x02)  # neither out of the root nor through /proc
_MODE = 0o1777  # no file that lends its owner's rights
_TIMES = 32
_LINK_OR_ANY = os.O_PATH | os.O_CLOEXEC

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class Attributes:
    """Answers those who want to change what a file is like.

    Args:
        listener: Where they ask.
        roots: Where they may, each as its path and a handle of it.
        is_denied: Whether a path is denied by a rule.
    """

    def __init__(
        self, listener: int, roots: Sequence[tuple[str, int]], is_denied: Callable[[str], bool] = lambda _: False
    ) -> None:
        self.listener = listener
        self._roots, self._is_denied = roots, is_denied

    def fileno(self) -> int:
        """What becomes readable when somebody asks."""
        return self.listener

    def answer(self) -> None:
        """Do what the next one asks for, or refuse it."""
        asked = notify.received(self.listener)
        if asked is None:
            return
        try:
            self.change(asked)
        except OSError as e:
            notify.answer(self.listener, asked, e.errno or errno.EPERM)
        except (ValueError, UnicodeError):
            notify.answer(self.listener, asked, errno.EPERM)

    def change(self, asked: notify.Asked) -> None:
        """Any of `NAMES`.

        Raises:
            OSError: It is not the code's to change, or cannot be.
        """
        handle = self._handle(asked)
        try:
            real = handles.real_name(handle)
            if not any(real == root or real.startswith(root + "/") for root, _ in self._roots):
                raise PermissionError(errno.EPERM, "nothing that may be written to")
            if self._is_denied(real):
                raise PermissionError(errno.EACCES, "denied by a path rule")
            _changed(asked, handle)
        finally:
            os.close(handle)
        notify.answer(self.listener, asked, 0)

    def _handle(self, asked: notify.Asked) -> int:
        name, values = asked.name, asked.arguments
        is_at = name.endswith(("at", "at2"))
        directory, address = (values[0], values[1]) if is_at else (None, values[0])
        text = "" if name in _BY_HANDLE or not address else notify.text_at(asked.pid, address)
        flags = _flags(asked)
        if not text and (name in _BY_HANDLE or not address or flags & _EMPTY_PATH):
            handle = os.open(_place(asked.pid, values[0]), _LINK_OR_ANY)
        else:
            handle = self._beneath(_place(asked.pid, directory), text, is_followed=not flags & _NOFOLLOW)
        if not notify.is_waiting(self.listener, asked):
            os.close(handle)
            raise OSError(errno.EINTR, "gone")
        return handle

    def _beneath(self, start: str, text: str, *, is_followed: bool) -> int:
        """What a path names, if no step of it leaves a root: nothing else of the host is so much as looked up."""
        if not text:
            raise FileNotFoundError(errno.ENOENT, "an empty path")
        path = text if text.startswith("/") else os.path.join(os.readlink(start), text)
        for root, fd in self._roots:
            if path == root or path.startswith(root + "/"):
                flags = _LINK_OR_ANY | (0 if is_followed else os.O_NOFOLLOW)
                how = struct.pack("=QQ", flags, 0) + _BENEATH
                rest = os.fsencode(path[len(root) :].lstrip("/") or ".")
                handle = int(_libc.syscall(ctypes.c_long(_OPENAT2), fd, rest, how, ctypes.c_size_t(len(how))))
                if handle >= 0:
                    return handle
                number = ctypes.get_errno()
                raise OSError(errno.EPERM if number in (errno.EXDEV, errno.ELOOP) else number, text)
        raise PermissionError(errno.EPERM, text)


def _place(pid: int, directory: int | None) -> str:
    """Where a relative path begins, as /proc shows it."""
    fd = -100 if directory is None else ctypes.c_int(directory & 0xFFFFFFFF).value
    return f"/proc/{pid}/cwd" if fd == -100 else f"/proc/{pid}/fd/{fd}"


def _flags(asked: notify.Asked) -> int:
    if asked.name == "lchown":
        return _NOFOLLOW
    at = {"fchmodat2": 3, "utimensat": 3, "fchownat": 4}.get(asked.name)
    return 0 if at is None else asked.arguments[at] & 0xFFFFFFFF


def _changed(asked: notify.Asked, handle: int) -> None:
    rest = asked.arguments[2 if asked.name.endswith(("at", "at2")) else 1 :]
    if "chmod" in asked.name:
        os.chmod(f"/proc/self/fd/{handle}", rest[0] & _MODE)
        return
    if "chown" in asked.name:
        done = _libc.fchownat(handle, b"", ctypes.c_uint(rest[0]), ctypes.c_uint(rest[1]), _EMPTY_PATH)
    else:
        times = notify.bytes_at(asked.pid, rest[0], _TIMES) if rest[0] else None
        done = _libc.utimensat(handle, b"", times, _EMPTY_PATH)
    if done:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
