"""The little that runs as machine code: a sleeper, and system calls in a row. Everything else is Python.

A child that makes its calls one by one in Python writes to a hundred and fifty pages it shares with the zygote, each
copied for it; made in a row they cost none.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
from collections.abc import Callable

CLONE_VM, CLONE_FILES, SIGCHLD = 0x100, 0x400, 17
ROW = 8  # words of a row: the number of the call, six arguments, and what it must give
END = (1 << 64) - 1  # in place of a number: there are no more

_SLEEPER = {
    "x86_64": (
        b"\xb8\x0d\x00\x00\x00"  # mov eax, SYS_rt_sigaction
        b"\xbf\x11\x00\x00\x00"  # mov edi, SIGCHLD
        b"\x48\x8d\x35\x15\x00\x00\x00"  # lea rsi, [the action below]
        b"\x31\xd2"  # xor edx, edx
        b"\x41\xba\x08\x00\x00\x00"  # mov r10d, 8
        b"\x0f\x05"  # syscall
        b"\xb8\x22\x00\x00\x00"  # again: mov eax, SYS_pause
        b"\x0f\x05"  # syscall
        b"\xeb\xf7"  # jmp again
        b"\x90\x90"
        b"\x01\x00\x00\x00\x00\x00\x00\x00" + b"\0" * 24  # the action: SIG_IGN
    )
}
"""A sleeper's whole program: ignore SIGCHLD, so that the kernel reaps orphans, and pause for ever."""
_CALLS = {
    "x86_64": (
        b"\x53"  # push rbx
        b"\x48\x89\xfb"  # mov rbx, rdi: the first row
        b"\x48\x8b\x03"  # again: mov rax, [rbx]
        b"\x48\x85\xc0"  # test rax, rax
        b"\x78\x2f"  # js done
        b"\x48\x8b\x7b\x08"  # mov rdi, [rbx+8]
        b"\x48\x8b\x73\x10"  # mov rsi, [rbx+16]
        b"\x48\x8b\x53\x18"  # mov rdx, [rbx+24]
        b"\x4c\x8b\x53\x20"  # mov r10, [rbx+32]
        b"\x4c\x8b\x43\x28"  # mov r8, [rbx+40]
        b"\x4c\x8b\x4b\x30"  # mov r9, [rbx+48]
        b"\x0f\x05"  # syscall
        b"\x48\x3b\x43\x38"  # cmp rax, [rbx+56]
        b"\x75\x06"  # jne failed
        b"\x48\x83\xc3\x40"  # add rbx, 64
        b"\xeb\xd2"  # jmp again
        b"\x48\x89\x43\x38"  # failed: mov [rbx+56], rax
        b"\x48\x89\xd8"  # mov rax, rbx
        b"\x5b\xc3"  # pop rbx; ret
        b"\x31\xc0"  # done: xor eax, eax
        b"\x5b\xc3"  # pop rbx; ret
    )
}
"""Rows of calls, one after the other; the address of the one that gave something else, which is then in it, or 0."""

_MACHINE = platform.machine()
_libc = ctypes.CDLL(None, use_errno=True)
_kept: list[mmap.mmap] = []


def _executable(code: bytes | None) -> int | None:
    """The address of a page with this code, which nobody can write to; None where there is no such page."""
    if code is None:
        return None
    memory = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    _kept.append(memory)
    is_refused = _libc.mprotect(ctypes.c_void_p(address), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC)
    return None if is_refused else address


def _function(address: int | None) -> Callable[[int], int] | None:
    """With the GIL held: to let go of it costs more than these calls."""
    return None if address is None else ctypes.PYFUNCTYPE(ctypes.c_ulong, ctypes.c_ulong)(address)


make_calls = _function(_executable(_CALLS.get(_MACHINE)))
"""Makes the calls of the table at an address: 0, or the address of the row that failed. None on other machines."""

_STACK = ctypes.create_string_buffer(64 * 1024)
_sleeper = _executable(_SLEEPER.get(_MACHINE))


def clone_sleeper() -> int:
    """A process that shares this one's memory and sleeps for ever: the cheapest init a pid namespace can have.

    It runs on a stack of its own and never touches that memory again, so it costs no page of its own. Its descriptors
    are ours as well: a copy of them would keep the ends of pipes open that we close.

    Raises:
        OSError: The kernel has no room for another process.
    """
    top = (ctypes.addressof(_STACK) + len(_STACK)) & ~0xF
    program = ctypes.c_void_p(_sleeper) if _sleeper else ctypes.cast(_libc.pause, ctypes.c_void_p)
    pid = _libc.clone(program, ctypes.c_void_p(top), CLONE_VM | CLONE_FILES | SIGCHLD, None)
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone")
    return int(pid)
