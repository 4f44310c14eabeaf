"""A machine without memory, descriptors or processes to give: a clear error, the host lives, the next action works."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hatchway.sandboxes.jail.cgroups import Cgroup, Cgroups, planned_folders

FULL = """
import asyncio, json, os, sys
from hatchway.core.errors import HatchwayError
from hatchway.core.limits import MIB, Limits
from hatchway.sandboxes.jail import JailSandbox

EAT = "x = []\\nwhile True: x.append(bytearray(1 << 20))"
FORK = '''
import os, time
for _ in range(30):
    if os.fork() == 0:
        x = bytearray(10 << 20)
        time.sleep(60)
raise SystemExit("done")
'''

async def ended(jail, code):
    try:
        limits = Limits(memory_bytes=2048 * MIB, wall_seconds=30)
        return (await (await jail.execute(code, limits=limits)).next()).output
    except HatchwayError as e:
        return [type(e).__name__, e.message.splitlines()[-1], e.hint]

async def main():
    tier, python, group = sys.argv[1:]
    with open(group + "/cgroup.procs", "w") as f:
        f.write(str(os.getpid()))
    async with JailSandbox(tier=tier, python=python or None, spares=0) as jail:
        async with jail.session() as session:
            await ended(session, "kept = 5")
            told = [await ended(jail, code) for code in ("1", EAT, "2", FORK, "3")]
            print(json.dumps([*told, await ended(session, "kept")]))

asyncio.run(main())
"""


@pytest.fixture
def small_machine() -> Iterator[Cgroup]:
    """A group with room for a host and little more."""
    groups = Cgroups.create(planned_folders())
    if groups is None:
        pytest.skip("no memory cgroup can be made here")
    try:
        group = groups.new()
        if not Path(group.path, "memory.limit_in_bytes").exists():
            pytest.skip("in version 2 a jail's groups lie beside the host's own, and not in it")
        group.prepare(160 << 20)
        yield group
    finally:
        groups.close()


def test_the_machine_is_out_of_memory(tier: str, small_machine: Cgroup, reachable_python: str | None) -> None:
    python = (reachable_python or "") if tier == "landlock" else ""
    command = [sys.executable, "-c", FULL, tier, python, small_machine.path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    first, eaten, second, forked, third, kept = json.loads(done.stdout)
    assert (first, second, third, kept) == (1, 2, 3, 5)
    assert eaten == [
        "CodeRuntimeError",
        "the interpreter died: killed by signal SIGKILL",
        "if the code did not kill itself, the machine had no memory left: see `free -m`, or lower Limits.memory_bytes",
    ]
    assert forked[0] == "CodeRuntimeError"
