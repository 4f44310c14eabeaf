"""System calls put together beforehand: a child that only has to make them writes to few of the pages it shares."""

from __future__ import annotations

import ctypes
import os
import resource
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from . import kernel

_libc = ctypes.PyDLL(None, use_errno=True)  # with the GIL held: to let go of it costs more than these calls
_libc.syscall.restype = ctypes.c_long
_NONE = ctypes.c_ulong(0)
_PR_CAPBSET_READ, _PR_SET_SECCOMP, _MODE_FILTER = 23, 22, 2


class Steps:
    """Calls in their order; each is checked."""

    def __init__(self) -> None:
        self._steps: list[tuple[Any, tuple[Any, ...], str]] = []
        self._kept: list[object] = []

    def take(self) -> None:
        """Make the calls.

        Raises:
            OSError: One of them was refused.
        """
        for call, arguments, what in self._steps:
            if call(*arguments) < 0:
                number = ctypes.get_errno()
                raise OSError(number, f"{what}: {os.strerror(number)}")

    def close_from(self, lowest: int) -> Steps:
        """Close every descriptor from this one on."""
        number = ctypes.c_long(kernel.CLOSE_RANGE)  # an older libc has no name for it
        return self._add("close_range", _libc.syscall, number, lowest, ctypes.c_uint(0xFFFFFFFF), 0)

    def unshare(self, flags: int) -> Steps:
        """Leave the namespaces `flags` name for new ones."""
        return self._add(f"unshare({flags:#x})", _libc.unshare, flags)

    def mount(self, kind: str, target: str, flags: int, data: str) -> Steps:
        """Mount a new file system."""
        source, where = kind.encode(), os.fsencode(target)
        what = f"mount {kind} on {target}"
        return self._add(what, _libc.mount, source, where, source, ctypes.c_ulong(flags), data.encode())

    def prctl(self, option: int, argument: int = 0, second: int = 0) -> Steps:
        """prctl(2)."""
        values = [ctypes.c_ulong(value) if value else _NONE for value in (argument, second, 0, 0)]
        return self._add(f"prctl({option})", _libc.prctl, option, *values)

    def rlimits(self, limits: Mapping[str, Sequence[int]]) -> Steps:
        """Lower limits, by name: soft and hard; one that is lower here already stays."""
        for name, given in limits.items():
            which = getattr(resource, name)
            top = resource.getrlimit(which)[1]
            soft, hard = given if top == resource.RLIM_INFINITY else (min(value, top) for value in given)
            self._add(name, _libc.prlimit, 0, which, struct.pack("=QQ", soft, hard), None)
        return self

    def no_capabilities(self) -> Steps:
        """As `kernel.drop_capabilities`, for a process that has just got all of them with its user namespace."""
        number = 0
        while _libc.prctl(_PR_CAPBSET_READ, ctypes.c_ulong(number), _NONE, _NONE, _NONE) >= 0:
            self.prctl(kernel.PR_CAPBSET_DROP, number)
            number += 1
        self.prctl(kernel.PR_CAP_AMBIENT, kernel.PR_CAP_AMBIENT_CLEAR_ALL)
        return self._add("capset", _libc.capset, kernel.CAPABILITY_HEADER, kernel.NO_CAPABILITIES)

    def system_calls(self, program: bytes) -> Steps:
        """Put a seccomp filter on."""
        code = ctypes.create_string_buffer(program, len(program))
        header = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
        self._kept.append(code)
        return self._add("prctl(PR_SET_SECCOMP)", _libc.prctl, _PR_SET_SECCOMP, _MODE_FILTER, header, _NONE, _NONE)

    def _add(self, what: str, call: Any, *arguments: Any) -> Steps:
        self._steps.append((call, arguments, what))
        return self
