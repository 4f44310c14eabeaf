"""Seccomp's user notification: a process asks another one, outside its filter, to do a system call in its place."""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import signal
import socket
import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hatchway.sandboxes.wall import seccomp, syscalls
else:  # on the far side of `exec` there is no Hatchway, only its folders
    from _hatchway_wall import seccomp, syscalls

_ASK = 0x7FC00000
_SET_FILTER, _NEW_LISTENER, _WAIT_KILLABLE = 1, 1 << 3, 1 << 5
_RECEIVE, _SEND, _IS_VALID, _ADD_FD = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
_AND_SEND, _GO_ON = 2, 1
_PAGE = 4096
_MAX_PATH = 4096

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.process_vm_readv.restype = ctypes.c_ssize_t


class Asked(NamedTuple):
    """A system call that waits to be done."""

    number: int
    """What an answer refers to."""
    pid: int
    name: str
    arguments: tuple[int, ...]


def ask_for(names: str) -> int:
    """From here on these calls, by this process and all it starts, wait for an answer on the descriptor given back.

    Needs `no_new_privs`. Should whoever answers be gone, the calls fail.
    """
    program = seccomp.assemble(seccomp.for_each(names, _ASK), default=seccomp.ALLOW)
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    number = syscalls.numbers(os.uname().machine)["seccomp"] or -1
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):  # the second: before Linux 5.19
        fd = int(_libc.syscall(ctypes.c_long(number), _SET_FILTER, flags, ctypes.create_string_buffer(header)))
        if fd >= 0:
            return fd
    failed = ctypes.get_errno()
    raise OSError(failed, f"seccomp listener: {os.strerror(failed)}")


def hand_over(channel: int, listener: int) -> None:
    """Give the descriptor that `ask_for` gave to whoever answers; both are closed here."""
    with socket.socket(fileno=channel) as way:
        way.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))])
    os.close(listener)


def taken(channel: socket.socket) -> int | None:
    """The descriptor that was handed over; None when whoever should have is dead."""
    data, ancillary, _, _ = channel.recvmsg(1, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
    if not data:
        return None
    fds = array.array("i")
    fds.frombytes(ancillary[0][2])
    return fds[0]


_names = {number: name for name, number in syscalls.numbers(os.uname().machine).items() if number is not None}


def received(listener: int) -> Asked | None:
    """The next call that waits; None when its process is gone already."""
    room = bytearray(80)
    try:
        fcntl.ioctl(listener, _RECEIVE, room)
    except OSError:
        return None
    number, pid, _, call, _, _, *arguments = struct.unpack("=QIIiIQ6Q", room)
    return Asked(number, pid, _names.get(call, ""), tuple(arguments))


def answer(listener: int, asked: Asked, error: int) -> None:
    """The call is done, or fails with `error`."""
    _told(listener, _SEND, struct.pack("=QqiI", asked.number, 0, -error, 0))


def let_through(listener: int, asked: Asked) -> None:
    """The kernel does the call itself, with whatever its pointers lead to by then."""
    _told(listener, _SEND, struct.pack("=QqiI", asked.number, 0, 0, _GO_ON))


def answer_with(listener: int, asked: Asked, fd: int, flags: int) -> None:
    """The call gives this file, at a number of the process's own."""
    if not _told(listener, _ADD_FD, struct.pack("=QIIII", asked.number, _AND_SEND, fd, 0, flags & os.O_CLOEXEC)):
        answer(listener, asked, 24)  # EMFILE: it has no number left


def is_waiting(listener: int, asked: Asked) -> bool:
    """Whether the process is still the one that asked."""
    return _told(listener, _IS_VALID, struct.pack("=Q", asked.number))


def _told(listener: int, request: int, message: bytes) -> bool:
    try:
        fcntl.ioctl(listener, request, message)
    except OSError:
        return False  # it died meanwhile
    return True


def can_ask() -> bool:
    """Whether calls can wait here for another process's answer; tried out with one that lives for a moment."""
    ready, tell = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            seccomp.no_new_privs()
            ask_for("fchmodat2")
            os.write(tell, b"x")
            signal.pause()
        finally:
            os._exit(1)
    os.close(tell)
    try:
        return bool(os.read(ready, 1) and bytes_at(pid, id(_names), 1))
    except OSError:
        return False  # its memory is closed to us
    finally:
        os.close(ready)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def text_at(pid: int, address: int) -> str:
    """The text that ends with a zero byte in another process's memory."""
    text = b""
    while len(text) < _MAX_PATH:
        at = address + len(text)
        text += _read(pid, at, _PAGE - at % _PAGE)
        if b"\0" in text:
            return os.fsdecode(text[: text.index(b"\0")])
    raise OSError(36, "the path is too long")


def bytes_at(pid: int, address: int, size: int) -> bytes:
    """So many bytes of another process's memory."""
    read = _read(pid, address, size)
    return read + _read(pid, address + len(read), size - len(read)) if len(read) < size else read


def _read(pid: int, address: int, size: int) -> bytes:
    """What lies there as far as one page goes.

    Raises:
        OSError: It cannot be read.
    """
    room = ctypes.create_string_buffer(size)
    ours, theirs = struct.pack("@PN", ctypes.addressof(room), size), struct.pack("@PN", address, size)
    count = _libc.process_vm_readv(pid, ours, ctypes.c_ulong(1), theirs, ctypes.c_ulong(1), ctypes.c_ulong(0))
    if count <= 0:
        raise OSError(14, "the memory cannot be read")
    return room.raw[:count]
