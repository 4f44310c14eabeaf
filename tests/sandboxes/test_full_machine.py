"""A machine without memory, descriptors or processes to give: a clear error, the host lives, the next action works."""

from __future__ import annotations

import json
import os
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


NO_DESCRIPTORS = """
import asyncio, gc, os, resource, sys
from hatchway.core.errors import HatchwayError
from hatchway.sandboxes.jail import CommandJail, JailSandbox

held = []

def fill(left):
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    try:
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        for _ in range(left):
            os.close(held.pop())

def free():
    while held:
        os.close(held.pop())

async def acted(jail):
    try:
        return (await (await jail.execute("1")).next()).tier
    except HatchwayError as e:
        assert e.hint.endswith("`ulimit -n`") or e.hint == "raise the limit: ulimit -n", (e, e.hint)
        return "refused"

async def commanded(jail):
    try:
        return (await jail.run(["true"])).tier
    except HatchwayError as e:
        assert e.hint.endswith("`ulimit -n`") or e.hint == "raise the limit: ulimit -n", (e, e.hint)
        return "refused"

async def main():
    tier, python = sys.argv[1] or None, sys.argv[2] or None
    code, commands = (lambda: JailSandbox(tier=tier, python=python)), (lambda: CommandJail(tier=tier))
    for make, used in ((code, acted), (commands, commanded)):
        async with make() as jail:
            await used(jail)
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        for left in range(0, 15, 2):
            async with make() as jail:
                fill(left)
                cold = await used(jail)
                free()
                warm = await used(jail)
                fill(left)
                several = await asyncio.gather(*(used(jail) for _ in range(4)))
                free()
                print(left, cold, warm, *several, await used(jail))
            gc.collect()
            assert len(os.listdir("/proc/self/fd")) == before, left

asyncio.run(main())
"""


@pytest.mark.parametrize("is_forced", [True, False])
def test_the_host_is_out_of_descriptors(tier: str, is_forced: bool, reachable_python: str | None) -> None:
    if tier == "landlock" and not is_forced:
        pytest.skip("where namespaces work nothing else is taken")
    python = (reachable_python or "") if tier == "landlock" else ""
    command = [sys.executable, "-c", NO_DESCRIPTORS, tier if is_forced else "", python]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split()[1:] for line in done.stdout.splitlines()]
    assert len(rows) == 16
    assert {word for row in rows for word in row} == {tier, "refused"}  # never the weaker wall
    assert [row[0] for row in rows[::8]] == ["refused"] * 2
    assert {(row[1], row[-1]) for row in rows} == {(tier, tier)}


CROWDED = """
import asyncio, os, sys
from hatchway.core.errors import HatchwayError
from hatchway.sandboxes.jail import JailSandbox

def most(count):
    with open(sys.argv[1] + "/pids.max", "w") as f:
        f.write(str(count))

def there():
    with open(sys.argv[1] + "/pids.current") as f:
        return int(f.read())

async def acted(jail):
    try:
        return (await (await jail.execute("1")).next()).output
    except HatchwayError as e:
        return type(e).__name__, e.message, e.hint

async def main():
    with open(sys.argv[1] + "/cgroup.procs", "w") as f:
        f.write(str(os.getpid()))
    async with JailSandbox(tier="namespaces", spares=0) as jail:
        print(await acted(jail))
        await asyncio.sleep(0.5)  # what has just ended still counts
        before = there()
        for room in (0, 1, 0, 1):
            most(before + room)
            print(await acted(jail))
            await asyncio.sleep(0.5)
        print(there() <= before)
        most("max")
        print(await acted(jail))

asyncio.run(main())
"""


@pytest.fixture
def crowd() -> Iterator[str]:
    """A group whose processes can be counted."""
    own = [line.split(":")[2] for line in Path("/proc/self/cgroup").read_text().splitlines() if ":pids:" in line]
    group = Path(f"/sys/fs/cgroup/pids{own[0] if own else ''}/hatchway-test-{os.getpid()}")
    try:
        group.mkdir()
    except OSError:
        pytest.skip("no cgroup of processes, version 1, can be made here")
    try:
        yield str(group)
    finally:
        group.rmdir()


def test_the_machine_is_out_of_processes(tier: str, crowd: str) -> None:
    if tier != "namespaces":
        pytest.skip("of a spawner without room nobody hears more than that it died")
    done = subprocess.run([sys.executable, "-c", CROWDED, crowd], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    refused = (
        "NoRoom",
        "the machine has no room for another process: Resource temporarily unavailable",
        "end other processes, or raise the limits: `ulimit -u`, and pids.max of the cgroup",
    )
    first, *others, is_nothing_left, last = done.stdout.splitlines()
    assert (first, is_nothing_left, last) == ("1", "True", "1")
    assert others == [str(refused)] * 4
