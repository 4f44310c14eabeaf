"""What sealed code may ask of the kernel: an allow-list of system calls, and the paths it may touch."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from . import kernel

if TYPE_CHECKING:
    from hatchway.sandboxes.wall import landlock, seccomp
else:  # on the far side of `exec` there is no Hatchway, only its folders
    from _hatchway_wall import landlock, seccomp

_PLAIN = """
read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 close close_range
lseek dup dup2 dup3 pipe pipe2 flock fsync fdatasync truncate ftruncate fallocate fadvise64 readahead sendfile
copy_file_range sync_file_range stat fstat lstat newfstatat statx statfs fstatfs access faccessat faccessat2 getdents
getdents64 getcwd chdir fchdir rename renameat mkdir mkdirat rmdir link linkat unlink unlinkat symlink symlinkat
readlink readlinkat umask fgetxattr flistxattr
poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd eventfd2
timerfd_create timerfd_settime timerfd_gettime signalfd signalfd4
mprotect munmap mremap madvise msync mincore brk membarrier
rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_tgsigqueueinfo rt_sigsuspend
sigaltstack restart_syscall pause kill tkill tgkill pidfd_open pidfd_send_signal
fork vfork execve execveat exit exit_group wait4 waitid set_tid_address set_robust_list get_robust_list rseq arch_prctl
futex futex_waitv getpid getppid gettid getuid geteuid getgid getegid getresuid getresgid getgroups getpgid getpgrp
getsid setsid setpgid capget getrlimit getrusage times getpriority getcpu sched_yield
sched_getaffinity sched_getparam sched_getscheduler sched_get_priority_max sched_get_priority_min
sched_rr_get_interval
clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time alarm getitimer setitimer timer_create
timer_settime timer_gettime timer_getoverrun timer_delete
recvmsg sendto recvfrom shutdown getsockopt getsockname getpeername uname sysinfo getrandom
"""
_NEW_NAMESPACES = (
    kernel.NEWNS | kernel.NEWCGROUP | kernel.NEWUTS | kernel.NEWIPC | kernel.NEWUSER | kernel.NEWPID | kernel.NEWNET
)
_CLONE_PARENT = 0x8000
"""A child of our own parent, which knows nothing of it: waiting for the end of us it would wait for that one too."""
_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS (`isatty`), TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX. Not TIOCSTI, which types for the user."""
_TERMINAL_IOCTLS = (0x5402, 0x5403, 0x5404, 0x5409, 0x540B, 0x540F, 0x5410, 0x5414, 0x5429)
"""TCSETS, TCSETSW, TCSETSF, TCSBRK, TCFLSH, TIOCGPGRP, TIOCSPGRP, TIOCSWINSZ, TIOCGSID."""
_PRCTLS = (2, 3, 15, 16, 21, 23, 38, 39, 0x53564D41)
"""Names of threads and of memory, no_new_privs; reading the parent-death signal, dumpable, seccomp, bounds."""
_ALL, _SOCKET_TYPE, _FILE_KIND = 0xFFFFFFFF, 0xF, 0o170000
_POINTER = 0xFFFFFFFFFFFFFFFF
_MAKES_FILE, _TMPFILE, _WHITEOUT = os.O_CREAT, 0o20000000, 4
_SET_IDS = (stat.S_ISUID, stat.S_ISGID)
EVERY_ATTRIBUTE = "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utimensat utime utimes futimesat"
"""Calls that change what a file is like. Landlock stands before none of them."""
_MODES = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1}
"""Which argument is the mode."""
_WATCHING = (1024, 1026)
"""F_SETLEASE, F_NOTIFY: the one holds up whoever else opens the file, the other tells what happens in a folder."""
_ON_OTHERS = "setpriority sched_setaffinity sendmsg"
_NOTES = "getxattr lgetxattr listxattr llistxattr"
"""Notes on files, by path: no wall of Landlock's, and they may tell where a file came from."""
_RLIMIT_CORE = 4
_HUGE_PAGES, _HUGE_MEMFD = 0x40000, 4
"""MAP_HUGETLB, MFD_HUGETLB: huge pages that the machine keeps for somebody; no limit on memory counts them."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full")
READ = landlock.READ | landlock.EXECUTE
WRITE = READ | landlock.WRITE | landlock.MAKE_FIFO


_SOL_SOCKET, _IPPROTO_TCP = socket.SOL_SOCKET, socket.IPPROTO_TCP
_SOCKET_OPTIONS = (
    *((_SOL_SOCKET, option) for option in (2, 7, 8, 9, 13, 20, 21)),
    *((_IPPROTO_TCP, option) for option in (1, 4, 5, 6, 12, 18)),
)
"""What HTTP clients set: address reuse, buffers, keep-alive, linger, time-outs; no delay, keep-alive times."""


def _sockets() -> list[Any]:
    """Streams over IPv4, to be connected only: in a net namespace where there is nothing but the proxy."""
    allow = seccomp.ALLOW
    stream = ((0, _ALL, socket.AF_INET), (1, _SOCKET_TYPE, socket.SOCK_STREAM))
    return [
        *(("socket", allow, (*stream, (2, _ALL, protocol))) for protocol in (0, _IPPROTO_TCP)),  # not MPTCP
        ("connect", allow, ()),
        *(("setsockopt", allow, ((1, _ALL, level), (2, _ALL, option))) for level, option in _SOCKET_OPTIONS),
        ("setsockopt", seccomp.refuse(errno.ENOPROTOOPT), ()),
    ]


def _files(attributes: list[str]) -> list[Any]:
    """No file that lends its owner's rights: where the code may write, that file would be the caller's, root's too."""
    allow, no = seccomp.ALLOW, seccomp.refuse(errno.EPERM)
    rules: list[Any] = [(name, allow, ()) for name in attributes if name not in _MODES]
    for name, mode in [(name, mode) for name, mode in _MODES.items() if name in (*attributes, "creat")]:
        rules += [*((name, no, ((mode, bit, bit),)) for bit in _SET_IDS), (name, allow, ())]
    for name, flags in (("open", 1), ("openat", 2)):
        rules.append((name, allow, ((flags, _MAKES_FILE | _TMPFILE, 0),)))
        rules += [*((name, no, ((flags + 1, bit, bit),)) for bit in _SET_IDS), (name, allow, ())]
    return [*rules, ("openat2", seccomp.refuse(errno.ENOSYS), ())]  # its mode lies in memory; callers fall back


def _on_others(shares_pids: bool) -> list[Any]:
    """Calls that act on any process, or tell of any file, of the same user: where those are in sight, only on oneself.

    There descriptors are not passed on either: a file that is neither open nor named could not be counted.
    """
    allow = seccomp.ALLOW
    if not shares_pids:
        return [*_limits(()), *seccomp.for_each(f"{_ON_OTHERS} {_NOTES}", allow)]
    return [
        *_limits(((0, _ALL, 0),)),
        *(("setpriority", allow, ((0, _ALL, which), (1, _ALL, 0))) for which in (os.PRIO_PROCESS, os.PRIO_PGRP)),
        ("sched_setaffinity", allow, ((0, _ALL, 0),)),
        *seccomp.for_each(_NOTES, seccomp.refuse(errno.ENOTSUP)),  # as on a file system without: copying goes on
    ]


def _limits(tests: Any) -> list[Any]:
    """Limits may be asked for, and set on whom the tests say; but the one of core dumps stays, whatever the code sets.

    At 1 there is none; at 0 the kernel would still start the machine's own handler, as root, on what the code left.
    """
    allow, done = seccomp.ALLOW, seccomp.refuse(0)
    return [
        ("setrlimit", done, ((0, _ALL, _RLIMIT_CORE),)),
        ("setrlimit", allow, ()),
        ("prlimit64", allow, ((2, _POINTER, 0),)),
        ("prlimit64", done, ((1, _ALL, _RLIMIT_CORE),)),
        ("prlimit64", allow, tests),
    ]


@cache
def system_calls(
    has_memfd: bool,
    has_sockets: bool = False,
    is_command: bool = False,
    shares_pids: bool = False,
    attributes: str = EVERY_ATTRIBUTE,
) -> bytes:
    """The filter. Memory files are allowed only where a cgroup counts them: an address space limit does not.

    A command may also set up its terminal and, where no file of others is in sight, watch files. The terminal is one of
    its own: see TIOCSTI above. Of the calls that change what a file is like it allows those in `attributes`.
    """
    allow = seccomp.ALLOW
    rules: list[Any] = [
        *seccomp.for_each(_PLAIN, allow),
        *_files(attributes.split()),
        *_on_others(shares_pids),
        *(("fcntl", seccomp.refuse(errno.EPERM), ((1, _ALL, command),)) for command in _WATCHING),
        ("fcntl", allow, ()),
        ("mmap", allow, ((3, _HUGE_PAGES, 0),)),
        ("renameat2", allow, ((4, _WHITEOUT, 0),)),  # a whiteout is a device
        ("clone", allow, ((0, _NEW_NAMESPACES | _CLONE_PARENT, 0),)),
        ("clone3", seccomp.refuse(errno.ENOSYS), ()),  # its flags lie in memory; libc falls back to clone
        *(("ioctl", allow, ((1, _ALL, request),)) for request in (*_IOCTLS, *(_TERMINAL_IOCTLS if is_command else ()))),
        ("ioctl", seccomp.refuse(errno.ENOTTY), ()),
        *(("prctl", allow, ((0, _ALL, option),)) for option in _PRCTLS),
        ("mknod", allow, ((1, _FILE_KIND, stat.S_IFIFO),)),  # named pipes, no devices
        ("mknodat", allow, ((2, _FILE_KIND, stat.S_IFIFO),)),
        # Event loops need stream pairs. A datagram socket, though paired, could be aimed at any address later.
        ("socketpair", allow, ((0, _ALL, socket.AF_UNIX), (1, _SOCKET_TYPE, socket.SOCK_STREAM))),
    ]
    if is_command and not shares_pids:  # no wall of Landlock's: it would tell the names in any folder of the caller's
        rules += seccomp.for_each("inotify_init1 inotify_init inotify_add_watch inotify_rm_watch", allow)
    if has_memfd or is_command:
        rules.append(("memfd_create", allow, ((1, _HUGE_MEMFD, 0),)))
    if has_sockets:
        rules += _sockets()
    return seccomp.assemble(rules, default=seccomp.refuse(errno.EPERM))


def restrict_paths(readable: list[str], writable: list[str], proxy_port: int = 0, listable: Sequence[str] = ()) -> None:
    """Landlock, where the kernel has it: read and execute here, write there, connect to the proxy, signal nobody."""
    restriction = path_restriction(readable, writable, proxy_port, listable)
    if restriction is not None:
        restriction.take()


def path_restriction(
    readable: list[str], writable: list[str], proxy_port: int = 0, listable: Sequence[str] = ()
) -> landlock.Restriction | None:
    """The same, to be taken later; None where the kernel has no Landlock."""
    if not landlock.abi():
        return None
    rules = [(path, READ) for path in readable] + [(path, WRITE) for path in writable]
    rules += [(path, landlock.READ_DIR) for path in listable]
    rules += [(path, landlock.READ_FILE | landlock.WRITE_FILE) for path in _DEVICES]
    ports = [(proxy_port, landlock.CONNECT_TCP)] if proxy_port else []
    return landlock.Restriction([rule for rule in rules if os.path.exists(rule[0])], ports=ports)


def restrict_system_calls(
    has_memfd: bool,
    has_sockets: bool = False,
    is_command: bool = False,
    shares_pids: bool = False,
    attributes: str = EVERY_ATTRIBUTE,
) -> None:
    """Seccomp, last of all: from here on there is no way to build another wall, nor to take one down."""
    seccomp.install(system_calls(has_memfd, has_sockets, is_command, shares_pids, attributes))
