"""The seccomp filter: an allow-list in classic BPF, assembled here and installed for good."""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from functools import lru_cache

from . import kernel, syscalls

_LD, _JEQ, _JGT, _JGE, _JSET, _AND, _RET = 0x20, 0x15, 0x25, 0x35, 0x45, 0x54, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2

NEW_NAMESPACES = (
    kernel.NEWNS | kernel.NEWCGROUP | kernel.NEWUTS | kernel.NEWIPC | kernel.NEWUSER | kernel.NEWPID | kernel.NEWNET
)
IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS (`isatty`), TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX. Not TIOCSTI, which types for the user."""
PRCTLS = (2, 3, 15, 16, 21, 23, 38, 39, 0x53564D41)
"""Names of threads and of memory, no_new_privs; reading the parent-death signal, dumpable, seccomp, bounds."""
AF_UNIX, SOCK_STREAM = 1, 1

Step = tuple[int, int, int, int]


def install(*, has_memfd: bool) -> None:
    """Refuse from now on, in this process and all it starts, what is not on the list. Needs no_new_privs."""
    program = _program(platform.machine(), has_memfd)
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    held = ctypes.create_string_buffer(header, len(header))
    kernel.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(held))


@lru_cache(maxsize=None)
def _program(machine: str, has_memfd: bool) -> bytes:
    return b"".join(struct.pack("=HBBI", *step) for step in _steps(machine, has_memfd))


def _steps(machine: str, has_memfd: bool) -> list[Step]:
    numbers = syscalls.checked_numbers(machine)
    steps = [_load(_ARCH), (_JEQ, 1, 0, _ARCHES[machine]), (_RET, 0, 0, _KILL), _load(_NUMBER)]
    if machine == "x86_64":
        steps += [(_JGE, 0, 1, _X32), (_RET, 0, 0, _KILL)]
    steps += _allow_ranges(syscalls.plain_numbers(machine))
    steps += _when(numbers["clone"], [_argument(0), (_JSET, 1, 0, NEW_NAMESPACES), *_allow()])
    steps += _when(numbers["clone3"], [_refuse(errno.ENOSYS)])  # its flags lie in memory; libc falls back to clone
    steps += _when(numbers["ioctl"], [_argument(1), *_allow_values(IOCTLS), _refuse(errno.ENOTTY)])
    steps += _when(numbers["prctl"], [_argument(0), *_allow_values(PRCTLS), _refuse(errno.EPERM)])
    steps += _when(numbers["socketpair"], _unix_stream())
    if has_memfd:
        steps += _when(numbers["memfd_create"], _allow())
    return [*steps, (_JGT, 0, 1, syscalls.NEWEST), _refuse(errno.ENOSYS), _refuse(errno.EPERM)]


def _unix_stream() -> list[Step]:
    """Event loops and pipes need stream pairs. A datagram pair could be aimed at another address later."""
    return [
        _argument(0), (_JEQ, 1, 0, AF_UNIX), _refuse(errno.EPERM),
        _argument(1), (_AND, 0, 0, 0xF), (_JEQ, 1, 0, SOCK_STREAM), _refuse(errno.EPERM), *_allow(),
    ]  # fmt: skip


def _when(number: int, block: list[Step]) -> list[Step]:
    """The block for one call; it ends in a verdict, so nothing after it runs for that call."""
    return [_load(_NUMBER), (_JEQ, 0, len(block) + 1, number), *block, _refuse(errno.EPERM)]


def _allow_ranges(numbers: list[int]) -> list[Step]:
    steps: list[Step] = []
    first = last = numbers[0]
    for number in [*numbers[1:], -1]:
        if number == last + 1:
            last = number
            continue
        steps += [(_JGE, 0, 2, first), (_JGT, 1, 0, last), *_allow()]
        first = last = number
    return steps


def _allow_values(values: tuple[int, ...]) -> list[Step]:
    return [step for value in values for step in ((_JEQ, 0, 1, value), *_allow())]


def _allow() -> list[Step]:
    return [(_RET, 0, 0, _ALLOW)]


def _refuse(number: int) -> Step:
    return (_RET, 0, 0, _ERRNO | number)


def _load(offset: int) -> Step:
    return (_LD, 0, 0, offset)


def _argument(index: int) -> Step:
    return _load(_ARGUMENTS + 8 * index)  # the low half: both machines are little-endian
