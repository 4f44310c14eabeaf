"""What a program may do that only computes: use memory and threads, and the descriptors it was given."""

from __future__ import annotations

import errno
import os

from .landlock import EXECUTE, READ_FILE
from .seccomp import ALLOW, for_each, refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .seccomp import Rule

_PLAIN = """
read write readv writev pread64 pwrite64 close close_range lseek fstat newfstatat stat lstat statx access faccessat
faccessat2 readlink readlinkat getcwd getdents64 fcntl dup dup2 dup3 pipe pipe2 eventfd2 poll ppoll select pselect6
epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 mmap mprotect munmap mremap madvise mincore brk membarrier
rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait sigaltstack restart_syscall futex futex_waitv
futex_wait futex_wake futex_requeue set_robust_list get_robust_list set_tid_address rseq arch_prctl sched_yield
sched_getaffinity sched_getparam sched_getscheduler getcpu clock_gettime clock_getres clock_nanosleep nanosleep
gettimeofday time times getrusage getrlimit getpid getppid gettid getuid geteuid getgid getegid uname sysinfo
getrandom execve exit exit_group
"""
_O_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CLONE_THREAD, _PR_SET_NAME = 0x00010000, 15
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/nix/store", "/gnu/store", "/etc/ld.so.cache")

OTHERWISE = refuse(errno.EPERM)
"""What becomes of a call that no rule allows: a newer libc that tries one goes on without it."""


def compute_only(pid: int) -> list[Rule]:
    """The system calls of a program that computes. No socket, no new process, no file for writing, no other process."""
    return [
        *for_each(_PLAIN, ALLOW),
        ("open", ALLOW, ((1, _O_WRITE, 0),)),
        ("openat", ALLOW, ((2, _O_WRITE, 0),)),
        ("clone", ALLOW, ((0, _CLONE_THREAD, _CLONE_THREAD),)),
        ("clone3", refuse(errno.ENOSYS), ()),  # its flags lie in memory; libc falls back to clone
        ("prctl", ALLOW, ((0, 0xFFFFFFFF, _PR_SET_NAME),)),
        ("prlimit64", ALLOW, ((2, 0xFFFFFFFFFFFFFFFF, 0),)),  # asking for limits, not setting them
        ("tgkill", ALLOW, ((0, 0xFFFFFFFF, pid),)),  # how abort() ends the process itself
    ]


def program_files(program: str) -> list[tuple[str, int]]:
    """The Landlock rules to start a program: itself, its loader, the system's libraries. Nothing to write."""
    rules = [(program, READ_FILE | EXECUTE)]
    if loader := _loader(program):
        rules.append((loader, READ_FILE | EXECUTE))
        rules.append((os.path.dirname(os.path.realpath(loader)), READ_FILE))
    return rules + [(path, READ_FILE) for path in _LIBRARIES if os.path.exists(path)]


def _loader(program: str) -> str:
    """The path of the dynamic loader an ELF program names; empty for a static one."""
    with open(program, "rb") as f:
        head = f.read(64)
        if head[:5] != b"\x7fELF\x02":
            return ""
        f.seek(int.from_bytes(head[32:40], "little"))
        size, count = int.from_bytes(head[54:56], "little"), int.from_bytes(head[56:58], "little")
        for entry in [f.read(size) for _ in range(count)]:
            if int.from_bytes(entry[:4], "little") == 3:  # PT_INTERP
                f.seek(int.from_bytes(entry[8:16], "little"))
                return f.read(int.from_bytes(entry[32:40], "little")).rstrip(b"\0").decode()
    return ""
