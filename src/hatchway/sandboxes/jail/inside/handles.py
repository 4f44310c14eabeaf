"""Handles in the place of paths: what is opened once and looked at by its real name cannot be exchanged meanwhile."""

from __future__ import annotations

import errno
import os


def of_asker(path: str, pid: int) -> str:
    """`/proc/self` and what links to it mean whoever asks."""
    for name, place in (
        ("/proc/self", f"/proc/{pid}"),
        ("/proc/thread-self", f"/proc/{pid}/task/{pid}"),
        ("/dev/fd", f"/proc/{pid}/fd"),
        ("/dev/stdin", f"/proc/{pid}/fd/0"),
        ("/dev/stdout", f"/proc/{pid}/fd/1"),
        ("/dev/stderr", f"/proc/{pid}/fd/2"),
    ):
        if path == name or path.startswith(name + "/"):
            return place + path[len(name) :]
    return path


def handle_of(path: str, base: int | None, *, is_followed: bool) -> int:
    """A handle of what a path names, of a link itself unless it is followed."""
    flags = os.O_PATH | os.O_CLOEXEC | (0 if is_followed else os.O_NOFOLLOW)
    return os.open(path, flags, dir_fd=base)


def entry_of(base: int | None, path: str) -> tuple[int, str, str]:
    """A handle of the directory, the last name, and the real path of both together."""
    folder, _, name = path.rstrip("/").rpartition("/")
    if name in ("", ".", ".."):
        raise OSError(errno.EBUSY, path)
    folder = folder or ("/" if path.startswith("/") else ".")
    parent = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=base)
    return parent, name, f"{real_name(parent).rstrip('/')}/{name}"


def real_name(handle: int) -> str:
    """Where what a handle stands for lies now."""
    return os.readlink(f"/proc/self/fd/{handle}")


def is_own(real: str) -> bool:
    """Whether it is of our own process, as /proc shows it."""
    parts = real.split("/")
    return len(parts) > 2 and parts[1] == "proc" and os.path.exists(f"/proc/self/task/{parts[2]}")


def reopened(handle: int, flags: int, mode: int = 0) -> int:
    """What a handle stands for, opened to be used."""
    return os.open(f"/proc/self/fd/{handle}", flags | os.O_CLOEXEC, mode)


def masked(pid: int, mode: int) -> int:
    """The mode without what the asker's umask takes; the usual one where it cannot be seen."""
    mask = 0o022
    try:
        with open(f"/proc/{pid}/status") as f:
            mask = next((int(line.split()[1], 8) for line in f if line.startswith("Umask:")), mask)
    except OSError:
        pass
    return mode & ~mask


def close(fd: int | None) -> None:
    """Close it, if there is one."""
    if fd is not None:
        os.close(fd)
