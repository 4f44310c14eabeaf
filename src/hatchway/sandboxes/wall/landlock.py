"""Landlock: a process gives up files, TCP ports and signals, for good, for itself and for all it starts.

Light to import on purpose (no `typing`, no `dataclasses`): it is loaded each time a sealed worker starts.
"""

from __future__ import annotations

import ctypes
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE, MAKE_CHAR, MAKE_DIR, MAKE_REG = 1 << 4, 1 << 5, 1 << 6, 1 << 7, 1 << 8
MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = 1 << 9, 1 << 10, 1 << 11, 1 << 12
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
BIND_TCP, CONNECT_TCP = 1 << 0, 1 << 1

READ = READ_FILE | READ_DIR
WRITE = WRITE_FILE | TRUNCATE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SYM | REFER
"""Rights to change a tree; not to make devices, sockets or pipes in it."""

_ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION, PATH_BENEATH, NET_PORT = 1, 1, 2
_FILE_RIGHTS = {1: MAKE_SYM, 2: REFER, 3: TRUNCATE, 4: TRUNCATE, 5: IOCTL_DEV}
"""The highest right each version knows; versions past 5 added none."""
_ABSTRACT_SOCKETS, _SIGNALS = 1 << 0, 1 << 1

_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """The version of Landlock this kernel offers; 0 without it."""
    try:
        return max(0, _syscall(_CREATE_RULESET, None, 0, _ASK_VERSION))
    except OSError:
        return 0


def restrict(rules: Iterable[tuple[str, int]], *, ports: Iterable[tuple[int, int]] = ()) -> int:
    """Allow what the rules say beneath each path and on each TCP port, and refuse whatever else Landlock can refuse.

    A right the kernel does not know yet is not refused; from version 6 on, signals and abstract sockets reach nobody
    outside. Needs `no_new_privs`.

    Args:
        rules: A path and the rights beneath it; rights that only directories have are left out on files.
        ports: A TCP port and `BIND_TCP` or `CONNECT_TCP`; used from version 4 on.

    Returns:
        The version in force.

    Raises:
        OSError: There is no Landlock, or a path cannot be opened.
    """
    restriction = Restriction(rules, ports=ports)
    restriction.take()
    return restriction.version


class Restriction:
    """What `restrict` does, put together beforehand: whoever takes it only has to open the paths.

    Raises:
        OSError: Here or in `take`, as `restrict` says.
    """

    def __init__(self, rules: Iterable[tuple[str, int]], *, ports: Iterable[tuple[int, int]] = ()) -> None:
        self.version = version = abi()
        known = (_FILE_RIGHTS[min(max(version, 1), 5)] << 1) - 1
        network = BIND_TCP | CONNECT_TCP if version >= 4 else 0
        scope = _ABSTRACT_SOCKETS | _SIGNALS if version >= 6 else 0
        size = 24 if version >= 6 else 16 if version >= 4 else 8
        self.refused = struct.pack("=QQQ", known, network, scope)[:size]
        """What becomes the rule set: every right this kernel knows."""
        self.paths = [(path, _rights_on(path, rights & known)) for path, rights in rules]
        """The rights that are left beneath each path."""
        self.ports = [struct.pack("=QQ", rights, port) for port, rights in ports] if network else []
        """Rules of TCP ports, as the kernel reads them."""

    def take(self) -> None:
        """Give up everything else."""
        ruleset = _syscall(_CREATE_RULESET, self.refused, len(self.refused), 0)
        try:
            for path, rights in self.paths:
                descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
                try:
                    _syscall(_ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0)
                finally:
                    os.close(descriptor)
            for port in self.ports:
                _syscall(_ADD_RULE, ruleset, NET_PORT, port, 0)
            _syscall(_RESTRICT_SELF, ruleset, 0)
        finally:
            os.close(ruleset)


def _rights_on(path: str, rights: int) -> int:
    return rights if os.path.isdir(path) else rights & _ON_FILES


def _syscall(number: int, *arguments: object) -> int:
    result: int = _libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), f"landlock system call {number}")
    return result
