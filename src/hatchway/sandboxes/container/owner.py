"""Whose a container is: a label that tells whether the process that started it still lives."""

from __future__ import annotations

import os
import secrets
from functools import cache
from pathlib import Path

OWNER_LABEL = "hatchway.owner"
"""On every container; its value names the machine, the pid namespace, and the process with its start time."""


def labels() -> dict[str, str]:
    """What a container of this process is marked with."""
    return {OWNER_LABEL: f"{_place()}.{os.getpid()}.{_started(os.getpid()) or 0}"}


def fresh_name() -> str:
    """A name nobody has."""
    return f"hatchway-{os.getpid()}-{secrets.token_hex(6)}"


def is_orphan(label: str) -> bool:
    """Whether the owner was a process of this machine and namespace, and is dead. Of others nobody here can tell."""
    place, _, process = label.partition(".")
    pid, _, started = process.partition(".")
    if place != _place() or not pid.isdigit() or not started.isdigit():
        return False
    return _started(int(pid)) != int(started)


@cache
def _place() -> str:
    """This boot of this machine, and this pid namespace: elsewhere the same pid is somebody else."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
        namespace = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        return f"{os.uname().nodename.replace('.', '-')}-0"  # not Linux: a reused pid keeps an orphan until it ends
    return f"{boot}-{namespace}"


def _started(pid: int) -> int | None:
    """When a process was started, in ticks since boot; None when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return None if os.path.isdir("/proc/self") or not _exists(pid) else 0
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[19])


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
