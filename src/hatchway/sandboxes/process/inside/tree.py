"""The process tree below a process, read from /proc; where there is no /proc nothing is below any process."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
SOCKET_BYTES = 208 * 1024
"""What can wait in a socket to be read; no page of the process counts it."""


class Stat(NamedTuple):
    """What /proc/<pid>/stat says."""

    parent: int
    own_ticks: int
    """CPU of the process itself."""
    reaped_ticks: int
    """CPU of its children that are dead and were waited for."""
    threads: int
    resident_bytes: int
    is_zombie: bool
    """It is dead, and its parent has not heard of it."""


def stat(pid: int) -> Stat | None:
    """What the kernel knows of a process; None when it is gone."""
    try:
        return parsed(_text(f"/proc/{pid}/stat"))
    except OSError:
        return None


def parsed(text: bytes) -> Stat:
    """What a file /proc/<pid>/stat says."""
    fields = text.rpartition(b")")[2].split()
    user, system, reaped_user, reaped_system = map(int, fields[11:15])
    return Stat(
        parent=int(fields[1]),
        own_ticks=user + system,
        reaped_ticks=reaped_user + reaped_system,
        threads=int(fields[17]),
        resident_bytes=int(fields[21]) * PAGE,
        is_zombie=fields[0] in (b"Z", b"X"),
    )


def children(pid: int) -> list[int]:
    """The direct children of all threads of a process."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, _text(f"/proc/{pid}/task/{thread}/children").split())
    except FileNotFoundError:
        return found or _children_by_scan(pid)
    except OSError:
        pass
    return found


def children_path(pid: int) -> str:
    """The file with the children of the first thread of a process."""
    return f"/proc/{pid}/task/{pid}/children"


def is_parent(pid: int) -> bool:
    """Whether the first thread of a process has children; True where that cannot be told so easily."""
    try:
        return bool(_text(children_path(pid)))
    except OSError:
        return True


def descendants(pid: int) -> dict[int, Stat]:
    """Every process below a process, with what the kernel knows of it."""
    found: dict[int, Stat] = {}
    todo = children(pid)
    while todo:
        child = todo.pop()
        seen = stat(child)
        if child not in found and seen is not None:
            found[child] = seen
            todo += children(child)
    return found


def proportional_bytes(pid: int) -> int:
    """Memory of a process where pages it shares with others count in part; 0 when it cannot be told."""
    path = f"/proc/{pid}/smaps_rollup"
    if (direct := _kilobytes(path, b"Pss:")) or os.geteuid() != 0:
        return direct
    with seen_as_its_user(pid):
        return _kilobytes(path, b"Pss:")


@contextmanager
def seen_as_its_user(pid: int) -> Generator[None]:
    """Look at a process closely: a container's root may not look that close at another user's, but that user may."""
    try:
        uid = os.stat(f"/proc/{pid}").st_uid
    except OSError:
        uid = 0  # it is gone
    if os.geteuid() != 0 or uid == 0:
        yield
        return
    import ctypes  # rarely needed, and dear

    libc = ctypes.CDLL(None)
    libc.setfsgid(uid)  # of this thread alone, and only for files; the group has the number of the user
    libc.setfsuid(uid)
    try:
        yield
    finally:
        libc.setfsuid(0)
        libc.setfsgid(0)


def most_bytes(processes: Iterable[int]) -> int:
    """What processes have in memory at most: all of it counted for each, every descriptor as a full socket."""
    return sum(s.resident_bytes + _open_files(p) * SOCKET_BYTES for p in processes if (s := stat(p)) is not None)


def bytes_together(processes: Iterable[int]) -> int:
    """What processes have in memory, shared pages counted once, and what may wait in their sockets."""
    pids = list(processes)
    sockets = {socket for pid in pids for socket in _sockets(pid)}
    return sum(map(proportional_bytes, pids)) + len(sockets) * SOCKET_BYTES


def _open_files(pid: int) -> int:
    try:
        return os.stat(f"/proc/{pid}/fd").st_size or len(os.listdir(f"/proc/{pid}/fd"))  # no size before Linux 6.2
    except OSError:
        return 0


def _sockets(pid: int) -> list[bytes]:
    return [name for name in descriptors(pid).values() if name.startswith(b"socket:")]


def descriptors(pid: int) -> dict[str, bytes]:
    """The descriptors a process has open, by their paths in /proc, and what each of them is."""
    found: dict[str, bytes] = {}
    with seen_as_its_user(pid):
        try:
            paths = [f"/proc/{pid}/fd/{name}" for name in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            return found  # it has just ended
        for path in paths:
            try:
                found[path] = os.readlink(os.fsencode(path))
            except OSError:
                pass  # closed just now: one that does so all the time must not hide the others
    return found


def peak_bytes(pid: int) -> int:
    """The most memory a process has had; 0 when it cannot be told."""
    return _kilobytes(f"/proc/{pid}/status", b"VmHWM:")


def _text(path: str) -> bytes:
    """A small file of the kernel's, read without the layers of `open`: every action's end waits for some of them."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(fd, 1 << 12)
        while data and len(data) % (1 << 12) == 0 and (more := os.read(fd, 1 << 12)):
            data += more
        return data
    finally:
        os.close(fd)


def _kilobytes(path: str, label: bytes) -> int:
    try:
        with open(path, "rb") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith(label))
    except (OSError, StopIteration):
        return 0


def _children_by_scan(pid: int) -> list[int]:
    """For kernels without the children file; nothing for a process that is just gone."""
    if os.path.exists(f"/proc/self/task/{os.getpid()}/children") or not os.path.isdir("/proc/self"):
        return []
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [p for p in pids if (seen := stat(p)) is not None and seen.parent == pid]
