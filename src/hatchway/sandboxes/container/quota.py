"""The limits a container is born with, as its engine is told them."""

from __future__ import annotations

from dataclasses import replace

from hatchway.core.limits import MIB
from hatchway.sandboxes.container.engines import flavor_of
from hatchway.sandboxes.container.policy import ContainerPolicy
from hatchway.sandboxes.quota import Quota

OWN_MEMORY = 48 * MIB
"""What two interpreters take before any code runs; the code's own limit is on top."""
OWN_PROCESSES = 2
WAITING = "--ulimit=sigpending=512:512"
"""Signals that wait, and timers: counted per uid, whoever else on the machine has it."""


def with_quota(policy: ContainerPolicy, quota: Quota, *, has_output: bool) -> ContainerPolicy:
    """The policy of a container that is held to this quota."""
    folder = f"rw,size={int(quota.disk_bytes)},mode=1777"
    if flavor_of(policy.engine).knows_tmpfs:
        folder += f",nr_inodes={int(quota.disk_files) + 1}"
    tmpfs = {"/tmp": folder.replace("rw,", "rw,exec,"), **({"/output": folder} if has_output else {})}
    cpu = max(1, round(quota.cpu_seconds))
    return replace(
        policy,
        memory=f"{int(quota.memory_bytes) + OWN_MEMORY}b",
        pids_limit=int(quota.processes) + OWN_PROCESSES,
        tmpfs=tmpfs,
        extra_args=(*policy.extra_args, f"--ulimit=cpu={cpu}:{cpu + 1}", "--ulimit=core=0", WAITING),
    )
