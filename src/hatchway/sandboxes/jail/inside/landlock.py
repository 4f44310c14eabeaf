"""Landlock: which parts of the tree a process may use, and that it signals nobody outside."""

from __future__ import annotations

import ctypes
import os
import struct

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_VERSION_QUESTION, _PATH_BENEATH = 1, 1
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
MAKE_CHAR, MAKE_BLOCK, TRUNCATE = 1 << 6, 1 << 11, 1 << 14
READ = EXECUTE | READ_FILE | READ_DIR
_LAST_RIGHT = {1: 12, 2: 13, 3: 14, 4: 14, 5: 15}
"""The highest file system right each version knows; from 5 on there is no new one."""
_NET_BIND, _NET_CONNECT = 1, 2
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2


def version() -> int:
    """The Landlock version of this kernel; 0 without Landlock."""
    return max(0, int(_libc.syscall(_CREATE, None, 0, _VERSION_QUESTION)))


def restrict(readable: list[str], writable: list[str]) -> None:
    """Allow reading and executing beneath some paths, everything but device nodes beneath others, and nothing else.

    With the version for it: no TCP, and neither signals nor abstract sockets to anyone outside. Needs no_new_privs.
    """
    known = version()
    every = (1 << (_LAST_RIGHT[min(known, 5)] + 1)) - 1
    attributes = struct.pack(
        "=QQQ",
        every,
        _NET_BIND | _NET_CONNECT if known >= 4 else 0,
        _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if known >= 6 else 0,
    )
    size = 24 if known >= 6 else 16 if known >= 4 else 8
    ruleset = _syscall("landlock_create_ruleset", _CREATE, attributes, size, 0)
    try:
        for path in readable:
            _allow(ruleset, path, READ & every)
        for path in writable:
            _allow(ruleset, path, every & ~(MAKE_CHAR | MAKE_BLOCK))
        _syscall("landlock_restrict_self", _RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not os.path.isdir(path):
            rights &= EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE
        rule = struct.pack("=Qi", rights, fd)
        _syscall("landlock_add_rule %s" % path, _ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
    finally:
        os.close(fd)


def _syscall(what: str, number: int, *args: object) -> int:
    result = int(_libc.syscall(ctypes.c_long(number), *args))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, "%s: %s" % (what, os.strerror(code)))
    return result
