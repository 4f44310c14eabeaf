"""What the container took, as its own cgroup says; 0 where it is not shown. Both versions of cgroups."""

from __future__ import annotations

import os

_V1, _V2 = "/sys/fs/cgroup", "/sys/fs/cgroup"


def oom_kills() -> int:
    """How many processes the kernel has killed for want of memory."""
    return _field(_V1 + "/memory/memory.oom_control", "oom_kill") or _field(_V2 + "/memory.events", "oom_kill")


def peak_bytes() -> int:
    """The most memory it has had."""
    return _number(_V1 + "/memory/memory.max_usage_in_bytes") or _number(_V2 + "/memory.peak")


def cpu_seconds() -> float:
    """CPU time of everything in it, ever."""
    nanoseconds = _number(_V1 + "/cpuacct/cpuacct.usage") or _number(_V1 + "/cpu,cpuacct/cpuacct.usage")
    if nanoseconds:
        return nanoseconds / 1e9
    return _field(_V2 + "/cpu.stat", "usage_usec") / 1e6 or _of_processes()


def _of_processes() -> float:
    """The same from the processes that are there, and the children they have reaped."""
    ticks = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as f:
                    ticks += sum(map(int, f.read().rpartition(")")[2].split()[11:15]))
            except OSError:
                pass  # it has just ended
    return ticks / os.sysconf("SC_CLK_TCK")


def _number(path: str) -> int:
    try:
        with open(path) as f:
            return int(f.read())
    except (OSError, ValueError):
        return 0


def _field(path: str, name: str) -> int:
    try:
        with open(path) as f:
            return next((int(line.split()[1]) for line in f if line.split()[:1] == [name]), 0)
    except (OSError, ValueError, IndexError):
        return 0
