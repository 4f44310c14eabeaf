"""System calls put together beforehand: a child that only has to make them writes to few of the pages it shares.

Nothing is left to the moment: what each call must give is known too, also which descriptor it opens, for the kernel
takes the lowest one that is free. Whatever comes out otherwise is refused.
"""

from __future__ import annotations

import array
import ctypes
import errno
import os
import platform
import resource
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from . import kernel, native

if TYPE_CHECKING:
    from hatchway.sandboxes.wall import landlock, syscalls
else:  # on the far side of `exec` there is no Hatchway, only its folders
    from _hatchway_wall import landlock, syscalls

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_NUMBERS = syscalls.numbers(platform.machine()) if platform.machine() in syscalls.MACHINES else {}
_WORD = (1 << 64) - 1
_PR_CAPBSET_READ, _PR_SET_SECCOMP, _MODE_FILTER = 23, 22, 2
_SOL_SOCKET, _SCM_RIGHTS = 1, 1


class Steps:
    """Calls in their order; each is checked.

    Args:
        free: The lowest descriptor that will be free when they are made, and so will all above it.
    """

    def __init__(self, free: int) -> None:
        self._free = free
        self._rows = array.array("Q", [native.END] + [0] * (native.ROW - 1))
        self._names: list[str] = []
        self._kept: list[object] = []
        self._changed: dict[tuple[int, int], object] = {}
        self._address = self._rows.buffer_info()[0]

    @property
    def free(self) -> int:
        """The lowest descriptor that is free once they are made."""
        return self._free

    def take(self) -> None:
        """Make the calls.

        Raises:
            OSError: One of them was refused.
        """
        failed = native.make_calls(self._address) if native.make_calls is not None else self._one_by_one()
        if failed:
            row = (failed - self._address) // (8 * native.ROW)
            gave = ctypes.c_long(self._rows[native.ROW * (row + 1) - 1]).value
            number = -gave if gave < 0 else errno.EPROTO
            raise OSError(number, f"{self._names[row]}: {os.strerror(number)}")

    def call(self, name: str, *arguments: int | bytes, gives: int = 0) -> int:
        """Add a call by its name; the place of its row. Bytes are given as their address."""
        number = _NUMBERS[name]
        assert number is not None, f"{name} is on every machine with namespaces"
        words = [number, *(self._word(argument) for argument in arguments)]
        words += [0] * (native.ROW - 1 - len(words)) + [gives & _WORD]
        row = len(self._names)
        self._names.append(name)
        self._rows[-native.ROW :] = array.array("Q", [*words, native.END, *[0] * (native.ROW - 1)])
        self._address = self._rows.buffer_info()[0]
        return row

    def set(self, row: int, argument: int, value: int | bytes) -> None:
        """Change an argument of a row, counted from 0, before the calls are made."""
        self._rows[native.ROW * row + 1 + argument] = self._word(value)
        if isinstance(value, bytes):
            self._changed[row, argument] = self._kept.pop()  # in the place of what was there before

    def opened(self, name: str, *arguments: int | bytes) -> int:
        """Add a call that opens a descriptor; which one it will be."""
        self.call(name, *arguments, gives=self._free)
        self._free += 1
        return self._free - 1

    def open(self, path: str, flags: int) -> int:
        """Open a file; which descriptor it will be."""
        return self.opened("openat", kernel.AT_FDCWD, os.fsencode(path) + b"\0", flags | os.O_CLOEXEC, 0)

    def close(self, fd: int) -> None:
        """Close the descriptor that was opened last."""
        assert fd == self._free - 1, "another one is in the way"
        self.call("close", fd)
        self._free -= 1

    def mount(self, kind: str, target: str, flags: int, data: str) -> None:
        """Mount a new file system."""
        source = kind.encode() + b"\0"
        self.call("mount", source, os.fsencode(target) + b"\0", source, flags, data.encode() + b"\0")

    def prctl(self, option: int, argument: int = 0) -> None:
        """prctl(2)."""
        self.call("prctl", option, argument, 0, 0, 0)

    def rlimits(self, limits: Mapping[str, Sequence[int]]) -> None:
        """Lower limits, by name: soft and hard; one that is lower here already stays."""
        for name, given in limits.items():
            which = getattr(resource, name)
            top = resource.getrlimit(which)[1]
            soft, hard = given if top == resource.RLIM_INFINITY else (min(value, top) for value in given)
            self.call("prlimit64", 0, which, struct.pack("=QQ", soft, hard), 0)

    def no_capabilities(self) -> None:
        """As `kernel.drop_capabilities`, for a process that has just got all of them with its user namespace."""
        number = 0
        while _libc.prctl(_PR_CAPBSET_READ, ctypes.c_ulong(number), 0, 0, 0) >= 0:
            self.prctl(kernel.PR_CAPBSET_DROP, number)
            number += 1
        self.prctl(kernel.PR_CAP_AMBIENT, kernel.PR_CAP_AMBIENT_CLEAR_ALL)
        self.call("capset", kernel.CAPABILITY_HEADER, kernel.NO_CAPABILITIES)

    def paths(self, restriction: landlock.Restriction) -> None:
        """Have Landlock refuse all but what the restriction allows."""
        ruleset = self.opened("landlock_create_ruleset", restriction.refused, len(restriction.refused), 0)
        for path, rights in restriction.paths:
            fd = self.open(path, os.O_PATH)
            self.call("landlock_add_rule", ruleset, landlock.PATH_BENEATH, struct.pack("=Qi", rights, fd), 0)
            self.close(fd)
        for port in restriction.ports:
            self.call("landlock_add_rule", ruleset, landlock.NET_PORT, port, 0)
        self.call("landlock_restrict_self", ruleset, 0)
        self.close(ruleset)

    def system_calls(self, program: bytes) -> None:
        """Put a seccomp filter on."""
        header = struct.pack("@HP", len(program) // 8, self._word(program))
        self.call("prctl", _PR_SET_SECCOMP, _MODE_FILTER, header, 0, 0)

    def send(self, channel: int, data: bytes, fds: Sequence[int]) -> None:
        """Send bytes and descriptors over a socket."""
        rights = struct.pack(f"@Nii{len(fds)}i", 16 + 4 * len(fds), _SOL_SOCKET, _SCM_RIGHTS, *fds)
        part = struct.pack("@PN", self._word(data), len(data))
        padded = rights + bytes(-len(rights) % 8)
        message = struct.pack("@PIPNPNi4x", 0, 0, self._word(part), 1, self._word(padded), len(padded), 0)
        self.call("sendmsg", channel, message, 0, gives=len(data))

    def _word(self, argument: int | bytes) -> int:
        if isinstance(argument, int):
            return argument & _WORD
        memory = ctypes.create_string_buffer(argument, len(argument))
        self._kept.append(memory)
        return ctypes.addressof(memory)

    def _one_by_one(self) -> int:
        """As the machine code does it, where there is none."""
        for row in range(0, len(self._rows) - native.ROW, native.ROW):
            number, *arguments, gives = self._rows[row : row + native.ROW]
            gave = _libc.syscall(ctypes.c_long(number), *map(ctypes.c_ulong, arguments))
            gave = (gave if gave >= 0 else -ctypes.get_errno()) & _WORD
            if gave != gives:
                self._rows[row + native.ROW - 1] = gave
                return self._address + 8 * row
        return 0
