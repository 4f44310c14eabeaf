"""The limits a process can set on itself. What they do not cover is watched from outside."""

import _thread
import errno
import os
import sys
import threading

ROOM = 128 * 1024 * 1024  # address space that is no memory: thread stacks, maps of files, what the interpreter reserves
SPARE = 16 * 1024 * 1024  # kept back so that a MemoryError can still be told

_base = None


def apply(limits, keep_hard):
    """Set the limits; with `keep_hard` a later action may have others."""
    global _base
    try:
        import resource
    except ImportError:
        return
    if _base is None:
        _base = _address_space()
    space = _base + ROOM + int(limits["memory_bytes"])
    _set(resource, resource.RLIMIT_AS, space, space + SPARE, keep_hard)
    for name, value in (("RLIMIT_NOFILE", "open_files"), ("RLIMIT_FSIZE", "file_bytes")):
        _set(resource, getattr(resource, name), int(limits[value]), int(limits[value]), keep_hard)


def rehearse():
    """Look at the address space while there is time, and set what is set already: nothing changes."""
    global _base
    try:
        import resource
    except ImportError:
        return
    if _base is None:
        _base = _address_space()
    for which in (resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE):
        _set(resource, which, *resource.getrlimit(which), True)


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
        if _thread._count() + 1 + len(_children()) < self._most:
            return
        what = _STARTS[event]
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
    try:
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    except (ImportError, ValueError, OSError):
        pass


def _set(resource, which, soft, hard, keep_hard):
    top = resource.getrlimit(which)[1]
    if keep_hard:
        hard = top
    elif top != resource.RLIM_INFINITY:
        hard = min(hard, top)
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    try:
        resource.setrlimit(which, (soft, hard))
    except (ValueError, OSError):
        pass  # a kernel without this limit, or one already lower


def _address_space():
    try:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 512 * 1024 * 1024
