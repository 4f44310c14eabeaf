"""The part of the limits that the kernel holds a sandbox to from its birth."""

from __future__ import annotations

from dataclasses import dataclass

from hatchway.core.limits import Limits


@dataclass(frozen=True, slots=True)
class Quota:
    """What the kernel holds a sandbox to; a spare serves only actions of the same quota."""

    memory_bytes: int
    processes: int
    cpu_seconds: float
    disk_bytes: int
    disk_files: int

    @classmethod
    def of(cls, limits: Limits) -> Quota:
        """The part of the limits that is set at birth."""
        return cls(limits.memory_bytes, limits.processes, limits.cpu_seconds, limits.disk_bytes, limits.disk_files)
