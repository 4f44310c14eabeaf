"""The limits a container is born with: a spare serves only actions of the same quota."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hatchway.core.limits import MIB, Limits
from hatchway.sandboxes.container.engines import flavor_of
from hatchway.sandboxes.container.policy import ContainerPolicy

OWN_MEMORY = 48 * MIB
"""What two interpreters take before any code runs; the code's own limit is on top."""
OWN_PROCESSES = 2


@dataclass(frozen=True, slots=True)
class Quota:
    """What the kernel holds the container to."""

    memory_bytes: int
    processes: int
    cpu_seconds: float
    disk_bytes: int
    disk_files: int

    @classmethod
    def of(cls, limits: Limits) -> Quota:
        """The part of the limits that is set at birth."""
        return cls(limits.memory_bytes, limits.processes, limits.cpu_seconds, limits.disk_bytes, limits.disk_files)

    def applied(self, policy: ContainerPolicy, *, has_output: bool) -> ContainerPolicy:
        """The policy of a container of this quota."""
        folder = f"rw,size={int(self.disk_bytes)},mode=1777"
        if flavor_of(policy.engine).knows_tmpfs:
            folder += f",nr_inodes={int(self.disk_files) + 1}"
        tmpfs = {"/tmp": folder.replace("rw,", "rw,exec,"), **({"/output": folder} if has_output else {})}
        cpu = max(1, round(self.cpu_seconds))
        return replace(
            policy,
            memory=f"{int(self.memory_bytes) + OWN_MEMORY}b",
            pids_limit=int(self.processes) + OWN_PROCESSES,
            tmpfs=tmpfs,
            extra_args=(*policy.extra_args, f"--ulimit=cpu={cpu}:{cpu + 1}", "--ulimit=core=0"),
        )
