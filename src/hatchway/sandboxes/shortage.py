"""What it means that the system does not give another process: descriptors, processes, memory or disk are used up."""

from __future__ import annotations

import errno
import os

from hatchway.core.errors import SandboxCrashed

_HINTS = {
    errno.EMFILE: "close files, or raise the limit of this process: `ulimit -n`",
    errno.ENFILE: "close files, or raise the limit of the machine: `sysctl fs.file-max`",
    errno.EAGAIN: "end other processes, or raise the limits: `ulimit -u`, and pids.max of the cgroup",
    errno.ENOMEM: "free memory: see `free -m`",
}
_FULL_DISK = dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "the host's disk is full: see `df`, or set TMPDIR to another")


class NoRoom(SandboxCrashed):
    """There is no room for another process now. It passes, and says nothing about the wall."""


def is_shortage(number: int | None) -> bool:
    """Whether this errno means that something is used up. Not a disk: by the same number namespaces are refused."""
    return number in _HINTS


def no_process(e: OSError) -> SandboxCrashed:
    """The error for a process that could not be started; `NoRoom` when something was used up."""
    if hint := {**_HINTS, **_FULL_DISK}.get(e.errno or 0):
        return NoRoom(f"the machine has no room for another process: {os.strerror(e.errno or 0)}", hint=hint)
    return SandboxCrashed(f"no process can be started: {e.strerror or e}", hint="hatchway doctor")
