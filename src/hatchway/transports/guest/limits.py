"""The limits a process can set on itself. What they do not cover is watched from outside."""

import _thread
import errno
import os
import sys
import threading

try:
    import resource
except ImportError:  # not on every system
    resource = None

ROOM = 128 * 1024 * 1024  # address space that is no memory: maps of files, what the interpreter reserves
SPARE = 16 * 1024 * 1024  # kept back so that a MemoryError can still be told

SESSION_FILES = 512
"""Descriptors that a later action of a session can be given, unless its first one was given more: what code could
grant itself must stay below what the host needs, for the kernel counts those under way to others together."""

FEW_ARENAS = 2
"""Heaps of the C library: it would reserve 64 MB of addresses for each thread, and threads take turns anyway."""
_M_ARENA_MAX = -8
_STACK = 8 * 1024 * 1024

_base = None
_space = 0
_tops = {}
"""The hard limits, as far as they were looked at: an action's start waits for each look."""


def apply(limits, keep_hard):
    """Set the limits; with `keep_hard` a later action may have others."""
    global _base, _space
    if resource is None:
        return
    if _base is None:
        _base = _address_space()
    space = _space = _base + ROOM + int(limits["memory_bytes"])
    _set(resource.RLIMIT_AS, space, space + SPARE + int(limits["processes"]) * _stack(), keep_hard)
    files = int(limits["open_files"])
    _set(resource.RLIMIT_NOFILE, files, max(files, SESSION_FILES) if keep_hard else files, False)
    _set(resource.RLIMIT_FSIZE, int(limits["file_bytes"]), int(limits["file_bytes"]), keep_hard)


def few_heaps():
    """Have threads share the C library's heaps, where it has a say in that. Before the first thread."""
    try:
        import ctypes

        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, FEW_ARENAS)
    except (ImportError, OSError, AttributeError):
        pass  # another C library


def _make_room(threads):
    """Addresses for the stacks of so many threads: what is reserved for them is no memory before it is used."""
    if resource is None or not _space:
        return
    try:
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        wanted = _space + threads * _stack()
        if soft < wanted and soft >= _space:  # else the code has set it
            resource.setrlimit(
                resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
            )
    except (ValueError, OSError):
        pass


def _stack():
    soft = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return _STACK if soft == resource.RLIM_INFINITY else min(soft, _STACK)


class TaskLimit:
    """Refuses threads and processes past the limit at once; what evades it is killed from outside a moment later."""

    def __init__(self):
        self._most = None
        sys.addaudithook(self._on_event)
        if sys.version_info < (3, 12):  # where starting a thread is no event yet
            start = _thread.start_new_thread
            threading._start_new_thread = _thread.start_new_thread = lambda *args: self._start(start, args)

    def set(self, most):
        """From now on at most so many at a time, the main thread included."""
        self._most = most

    def _start(self, start, args):
        self._on_event("_thread.start_new_thread", args)
        return start(*args)

    def _on_event(self, event, _args):
        if event not in _STARTS or self._most is None:
            return
        what, threads = _STARTS[event], _thread._count()
        if threads + 1 + len(_children()) < self._most:
            if what == "thread":
                _make_room(threads + 1)
            return
        told = "can't start new %s: Limits.processes is %d" % (what, self._most)
        raise RuntimeError(told) if what == "thread" else BlockingIOError(errno.EAGAIN, told)


_STARTS = dict.fromkeys(("_thread.start_new_thread", "_thread.start_joinable_thread"), "thread")
_STARTS.update(dict.fromkeys(("os.fork", "os.forkpty", "os.posix_spawn", "subprocess.Popen"), "process"))


def _children():
    try:
        with open("/proc/self/task/%d/children" % os.getpid()) as f:
            return f.read().split()
    except OSError:
        return ()


def relax():
    """Open the spare room."""
    if resource is None:
        return
    try:
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    except (ValueError, OSError):
        pass


def _set(which, soft, hard, keep_hard):
    if _is_set(which, soft, hard, keep_hard) or _is_set(which, soft, hard, keep_hard):
        return  # the second time for code that has lowered its hard limit since it was looked at


def _is_set(which, soft, hard, keep_hard):
    top = _tops.get(which)
    if top is None:
        top = _tops[which] = resource.getrlimit(which)[1]
    if keep_hard:
        hard = top
    elif top != resource.RLIM_INFINITY:
        hard = min(hard, top)
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    try:
        resource.setrlimit(which, (soft, hard))
    except (ValueError, OSError):
        del _tops[which]  # or a kernel without this limit
        return False
    _tops[which] = hard
    return True


def _address_space():
    try:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 512 * 1024 * 1024
