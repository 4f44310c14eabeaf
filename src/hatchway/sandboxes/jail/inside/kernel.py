"""System calls the standard library lacks, by ctypes. Each raises OSError with the name of the call."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MNT_DETACH = 2
NEWNS, NEWCGROUP, NEWUTS, NEWIPC = 0x20000, 0x02000000, 0x04000000, 0x08000000
NEWUSER, NEWPID, NEWNET = 0x10000000, 0x20000000, 0x40000000

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 36, 38, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV, ATTR_NOEXEC = 1, 2, 4, 8
ATTR_IDMAP = 0x00100000
OPEN_TREE_CLONE, AT_RECURSIVE, AT_EMPTY_PATH = 1, 0x8000, 0x1000
MOVE_MOUNT_F_EMPTY_PATH = 4
AT_FDCWD = -100

UID_RANGE = 0x7000_0000  # above every range handed out by systemd or shadow; plus a pid, which is unique while it lives
MOST_PIDS = 1 << 22
ONLY_ROOT = "this user namespace has no uid but that of root outside"

_MACHINE = platform.machine()
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
CLOSE_RANGE = 436
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
CAPABILITY_HEADER, NO_CAPABILITIES = struct.pack("=Ii", 0x20080522, 0), bytes(24)  # version 3, ourselves

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc_with_gil = ctypes.PyDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _path(path: str | None) -> bytes | None:
    return None if path is None else os.fsencode(path)


def _syscall(number: int, what: str, *args: object) -> int:
    return _checked(int(_libc.syscall(ctypes.c_long(number), *args)), what)


def is_known_machine() -> bool:
    """Whether the call numbers of this architecture are known here."""
    return _MACHINE in _PIVOT_ROOT


def has_uids_to_give() -> bool:
    """Whether a jail can have a uid of its own: for root, unless it is only called so by a small user namespace.

    Such a root, of a rootless container, has one uid or a few and is an ordinary user to the machine.
    """
    if os.geteuid() != 0:
        return False
    return any(first <= UID_RANGE and first + count >= UID_RANGE + MOST_PIDS for first, _, count in _uid_map())


def is_only_root() -> bool:
    """Whether root is the one uid there is, and may be root to the machine too: the code must never have that."""
    return os.geteuid() == 0 and not has_uids_to_give() and any(outside == 0 for _, outside, _ in _uid_map())


def _uid_map() -> list[list[int]]:
    with open("/proc/self/uid_map") as f:
        return [[int(number) for number in line.split()] for line in f]


def unshare(flags: int) -> None:
    """Leave the namespaces `flags` name for new ones."""
    _checked(_libc.unshare(flags), f"unshare({flags:#x})")


def setns(fd: int, flags: int) -> None:
    """Enter the namespace behind `fd`."""
    _checked(_libc.setns(fd, flags), "setns")


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    """mount(2)."""
    done = _libc.mount(_path(source), _path(target), _path(kind), ctypes.c_ulong(flags), _path(data))
    _checked(done, f"mount {source} on {target}")


def bind(source: str, target: str) -> None:
    """Show a tree, with what is mounted in it, at a second place."""
    mount(source, target, flags=MS_BIND | MS_REC)


def detach(target: str) -> None:
    """Take a mount out of the tree at once; it goes when nobody uses it."""
    _checked(_libc.umount2(_path(target), MNT_DETACH), f"umount {target}")


def pivot_root(new: str, old: str) -> None:
    """Make `new` the root and put the old one at `old`."""
    _syscall(_PIVOT_ROOT[_MACHINE], f"pivot_root {new}", _path(new), _path(old))


def restrict_mount(target: str, attributes: int, *, is_recursive: bool = True) -> None:
    """Add flags such as ATTR_RDONLY to a mount (and all below it) without dropping any it has."""
    _mount_setattr(AT_FDCWD, target, AT_RECURSIVE if is_recursive else 0, attributes, 0)


def idmapped_tree(source: str, user_namespace: int) -> int:
    """A detached copy of the tree at `source` whose owners are seen through the id map of a user namespace."""
    tree = _syscall(_OPEN_TREE, f"open_tree {source}", AT_FDCWD, _path(source), OPEN_TREE_CLONE | os.O_CLOEXEC)
    try:
        _mount_setattr(tree, "", AT_EMPTY_PATH, ATTR_IDMAP, user_namespace)
    except OSError:
        os.close(tree)
        raise
    return tree


def attach_tree(tree: int, target: str) -> None:
    """Put a detached tree at `target`."""
    _syscall(_MOVE_MOUNT, f"move_mount to {target}", tree, b"", AT_FDCWD, _path(target), MOVE_MOUNT_F_EMPTY_PATH)


def _mount_setattr(directory: int, path: str, at_flags: int, attributes: int, user_namespace: int) -> None:
    wanted = struct.pack("=QQQQ", attributes, 0, 0, user_namespace)
    _syscall(_MOUNT_SETATTR, f"mount_setattr {path}", directory, _path(path), at_flags, wanted, len(wanted))


def prctl(option: int, argument: int = 0, second: int = 0) -> int:
    """prctl(2)."""
    values = [ctypes.c_ulong(v) for v in (argument, second, 0, 0)]
    return _checked(_libc.prctl(option, *values), f"prctl({option})")


def close_all_but(kept: set[int]) -> None:
    """Close every file descriptor but these."""
    low = 0
    for fd in [*sorted(kept), 0xFFFFFFFF]:
        if fd > low:
            _syscall(CLOSE_RANGE, "close_range", ctypes.c_uint(low), ctypes.c_uint(fd - 1), 0)
        low = fd + 1


def set_rlimits(limits: dict[str, tuple[int, int]]) -> None:
    """Lower limits, by name: soft and hard; one that is lower already stays."""
    for name, (soft, hard) in limits.items():
        which = getattr(resource, name)
        top = resource.getrlimit(which)[1]
        if top != resource.RLIM_INFINITY:
            soft, hard = min(soft, top), min(hard, top)
        resource.setrlimit(which, (soft, hard))


def drop_bounds() -> None:
    """Give up the right to ever gain a capability. Needs CAP_SETPCAP; without it there is nothing to gain."""
    for number in range(64):
        if _libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0) < 0:
            break  # past the last one this kernel knows


def drop_capabilities() -> None:
    """Give up every capability, for good: bounding, ambient, permitted, effective, inheritable."""
    drop_bounds()
    _libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    _checked(_libc.capset(CAPABILITY_HEADER, NO_CAPABILITIES), "capset")


def fork() -> int:
    """A plain fork, without the interpreter's own hooks: they write to two hundred pages, each copied for it.

    Only for a process of one thread, in the hands of code that knows what the hooks would have done.
    """
    return _checked(_libc_with_gil.fork(), "fork")
