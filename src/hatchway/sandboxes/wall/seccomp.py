"""Seccomp: a filter of system calls, written by name, assembled to classic BPF and installed for good.

Light to import on purpose (no `typing`, no `dataclasses`): it is loaded each time a sealed worker starts.
"""

from __future__ import annotations

import ctypes
import os
import struct

from . import syscalls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Test = tuple[int, int, int]
    """Argument number, mask, value: passes when `argument & mask == value`."""
    Rule = tuple[str, int, tuple[Test, ...]]
    """A system call, what becomes of it, and the tests that must all pass for that."""
    Verdict = tuple[int, tuple[Test, ...]]
    """What becomes of a call whose arguments pass the tests."""
    Step = tuple[int, int, int, int]

ALLOW, KILL = 0x7FFF0000, 0x80000000
_ERRNO = 0x00050000
_LOAD, _AND, _JUMP, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x54, 0x05, 0x15, 0x35, 0x06
_MAX_JUMP = 255
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16
_MACHINE_CODES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000
_MAX_STEPS = 4096
_PR_SET_SECCOMP, _MODE_FILTER, _PR_SET_NO_NEW_PRIVS = 22, 2, 38

_libc = ctypes.CDLL(None, use_errno=True)


def refuse(number: int) -> int:
    """The action that fails a call with this `errno`."""
    return _ERRNO | number


def for_each(names: str, action: int) -> list[Rule]:
    """One rule without tests for each name in a text of names."""
    return [(name, action, ()) for name in names.split()]


def assemble(rules: Iterable[Rule], *, default: int, machine: str = "") -> bytes:
    """The filter as BPF: the first rule whose name and tests fit decides, else `default`.

    A call in the numbers of another machine (i386, x32) kills the process: its numbers mean other calls.

    Args:
        rules: In order. A call this machine does not have is left out.
        default: What becomes of all other calls: `ALLOW` makes a deny-list, `refuse(EPERM)` an allow-list.
        machine: As `os.uname` names it; this one by default.

    Raises:
        KeyError: No such system call, or no table for this machine.
        ValueError: The filter is longer than the kernel takes.
    """
    machine = machine or os.uname().machine
    known = syscalls.numbers(machine) if machine in _MACHINE_CODES else {}
    said: dict[int, list[Verdict]] = {}
    for name, action, tests in rules:
        if (number := known[name]) is not None:
            said.setdefault(number, []).append((action, tests))
    steps = _opening(machine) + _search(_stretches(said, default))
    if len(steps) > _MAX_STEPS:
        raise ValueError(f"the filter has {len(steps)} steps, the kernel takes {_MAX_STEPS}")
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def no_new_privs() -> None:
    """No program started from here on gains rights; what Landlock and seccomp ask for first."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def install(program: bytes) -> None:
    """Put the filter on this thread and all it starts. Needs `no_new_privs`.

    Raises:
        OSError: The kernel has no seccomp, or an outer filter forbids it.
    """
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    _prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.create_string_buffer(header, len(header)), 0, 0)


def _opening(machine: str) -> list[Step]:
    steps = [_load(_MACHINE_AT), (_IF_EQUAL, 1, 0, _MACHINE_CODES[machine]), (_RETURN, 0, 0, KILL), _load(_NUMBER_AT)]
    if machine == "x86_64":
        steps += [(_IF_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, KILL)]
    return steps


def _stretches(said: dict[int, list[Verdict]], default: int) -> list[tuple[int, list[Step]]]:
    """Where each stretch of numbers of which the same is said begins, and the steps that say it."""
    stretches: list[tuple[int, list[Step]]] = []
    for number in sorted({0, *said, *(each + 1 for each in said)}):
        steps = _steps(said.get(number, []), default)
        if not stretches or stretches[-1][1] != steps:
            stretches.append((number, steps))
    return stretches


def _steps(verdicts: list[Verdict], default: int) -> list[Step]:
    steps: list[Step] = []
    for action, tests in verdicts:
        steps += _rule(action, tests)
        if not tests:
            return steps
    return [*steps, (_RETURN, 0, 0, default)]


def _search(stretches: list[tuple[int, list[Step]]]) -> list[Step]:
    """A search by halves: the kernel runs the filter for every call there is when it is installed."""
    if len(stretches) == 1:
        return stretches[0][1]
    middle = len(stretches) // 2
    below, above = _search(stretches[:middle]), _search(stretches[middle:])
    pivot = stretches[middle][0]
    if len(below) <= _MAX_JUMP:
        return [(_IF_AT_LEAST, len(below), 0, pivot), *below, *above]
    return [(_IF_AT_LEAST, 0, 1, pivot), (_JUMP, 0, 0, len(below)), *below, *above]


def _rule(action: int, tests: tuple[Test, ...]) -> list[Step]:
    """The steps of one rule; what they do not decide goes on behind them."""
    halves = [half for test in tests for half in _halves(*test)]
    steps: list[Step] = []
    for index, (offset, mask, value) in enumerate(halves):
        to_end = 3 * (len(halves) - 1 - index) + 1  # over the remaining halves and the verdict
        steps += [_load(offset), (_AND, 0, 0, mask), (_IF_EQUAL, 0, to_end, value)]
    return [*steps, (_RETURN, 0, 0, action)]


def _halves(argument: int, mask: int, value: int) -> list[tuple[int, int, int]]:
    """BPF compares 32 bits at a time; both machines keep the low half first."""
    low = _ARGUMENTS_AT + 8 * argument
    halves = [(low, mask & 0xFFFFFFFF, value & 0xFFFFFFFF), (low + 4, mask >> 32, value >> 32)]
    return [half for half in halves if half[1]]


def _load(offset: int) -> Step:
    return (_LOAD, 0, 0, offset)


def _prctl(*arguments: object) -> None:
    if _libc.prctl(*arguments):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), f"prctl {arguments[0]}")
