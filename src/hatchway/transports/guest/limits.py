"""The limits a process can set on itself. What they do not cover is watched from outside."""

import os

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
