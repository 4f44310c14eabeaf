"""How a jail ends: killed from outside, refused by the system, or with its host. Nothing may be left."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.errors import SandboxCrashed
from hatchway.core.results import ExecutionResult
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.process.inside import tree

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", autouse=True)
def _usable() -> None:
    seen = JailSandbox.probe()
    if seen.tier != "namespaces":
        pytest.skip(f"{seen.reason} {seen.hint}")


async def run(runs: Any, code: str) -> ExecutionResult:
    execution = await runs.execute(code)
    result = await execution.next()
    assert isinstance(result, ExecutionResult)
    return result


@pytest.mark.parametrize("depth", [0, 1], ids=["keeper", "zygote"])
async def test_killed_from_outside_running_code_fails_and_the_next_works(depth: int) -> None:
    async with JailSandbox(tier="namespaces") as jail:
        assert (await run(jail, "1")).output == 1
        running = await jail.execute("import time\ntime.sleep(60)")
        await asyncio.sleep(0.1)
        (victim,) = _keepers()
        os.kill(tree.children(victim)[0] if depth else victim, signal.SIGKILL)
        with pytest.raises(SandboxCrashed) as crashed:
            await running.next()
        assert crashed.value.message == "the process that supervises the code died"
        assert (await run(jail, "2")).output == 2


@pytest.mark.parametrize("first", [*range(58, 66)])
async def test_it_starts_whatever_descriptors_its_host_has_open(first: int) -> None:
    """The zygote rehearses on numbers of its own choosing, and the host's socket comes with the host's number."""
    held = [os.open(os.devnull, os.O_RDONLY)]
    try:
        while held[-1] < first - 1:
            held.append(os.open(os.devnull, os.O_RDONLY))
        async with JailSandbox(tier="namespaces", spares=0) as jail:
            assert (await run(jail, "1")).output == 1
    finally:
        for fd in held:
            os.close(fd)


@pytest.mark.parametrize("depth", [0, 1], ids=["keeper", "zygote"])
async def test_killed_with_an_answer_unread_it_is_no_fault_of_the_code(depth: int) -> None:
    """The kernel then tells of a broken channel, and does so before anybody hears of the death."""
    async with JailSandbox(tier="namespaces", spares=0) as jail:
        running = await jail.execute("ping()", functions=["ping"])
        await running.next()
        (victim,) = _keepers()
        for pid in tree.descendants(victim):
            if not tree.children(pid):
                os.kill(pid, signal.SIGSTOP)
        await running.provide_result("unread")
        os.kill(tree.children(victim)[0] if depth else victim, signal.SIGKILL)
        with pytest.raises(SandboxCrashed) as crashed:
            await running.next()
        assert crashed.value.message == "the process that supervises the code died"


async def test_killed_and_used_at_once_a_new_one_is_started() -> None:
    """Before the event loop had a turn to hear of the death."""
    async with JailSandbox(tier="namespaces") as jail:
        for _ in range(3):
            assert (await run(jail, "1")).output == 1
            (victim,) = _keepers()
            zygote = tree.children(victim)[0]
            os.kill(zygote, signal.SIGKILL)
            _wait_dead(zygote)


async def test_a_spare_that_was_killed_is_not_used() -> None:
    async with JailSandbox(tier="namespaces", spares=1) as jail:
        assert (await run(jail, "1")).output == 1
        await asyncio.sleep(0.2)
        (keeper,) = _keepers()
        for pid in [pid for pid in tree.descendants(keeper) if not tree.children(pid)]:
            with suppress(ProcessLookupError):  # its init went first, and took it along
                os.kill(pid, signal.SIGKILL)
            _wait_dead(pid)
        assert (await run(jail, "2")).output == 2


@pytest.mark.parametrize(("depth", "what"), [(0, "keeper"), (1, "zygote")], ids=["keeper", "zygote"])
async def test_killed_while_it_starts_it_is_started_again(
    depth: int, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with JailSandbox(tier="namespaces") as jail:
        starting = asyncio.ensure_future(run(jail, "1"))
        await _kill_a_starting_jail(depth)
        assert (await starting).output == 1
        assert jail.tier == "namespaces"
    (told,) = [record.getMessage() for record in caplog.records]
    assert told == f"the jail ended while it started: its {what} was killed by signal 9; it is started again"


async def test_killed_whenever_it_starts_it_says_how_it_ended() -> None:
    async with JailSandbox(tier="namespaces") as jail:
        starting = asyncio.ensure_future(jail.execute("1"))
        for _ in range(2):
            await _kill_a_starting_jail(0)
        with pytest.raises(SandboxCrashed) as refused:
            await starting
        assert refused.value.message == "the jail ended while it started: its keeper was killed by signal 9"
        assert (await run(jail, "2")).output == 2


async def _kill_a_starting_jail(depth: int) -> None:
    """Kill the keeper, or its child: the zygote, or who is about to start it."""
    while not (victims := _keepers()):
        await asyncio.sleep(0.001)
    while depth and not (victims := tree.children(_keepers()[0])):
        await asyncio.sleep(0)
    os.kill(victims[0], signal.SIGKILL)
    _wait_dead(victims[0])


async def test_closing_leaves_nothing() -> None:
    before = _left()
    jail = JailSandbox(tier="namespaces")
    assert (await run(jail, "1")).output == 1
    running = await jail.execute("import os\nos.fork()\nwhile True: pass")
    assert len(_left()["processes"]) > len(before["processes"])
    await jail.aclose()
    await jail.aclose()
    with pytest.raises(SandboxCrashed, match="the sandbox was closed while the code ran"):
        await running.next()
    assert _added(before) == {}


@pytest.mark.parametrize("turns", [0, 1, 5, 30, 60])
async def test_cancelled_while_it_starts_again_and_again_nothing_is_left(turns: int) -> None:
    """As a cancel scope of anyio does, which cancels at every turn of the loop until its tasks are gone."""
    before = _left()
    jail = JailSandbox(tier="namespaces")
    task = asyncio.ensure_future(jail.execute("1"))
    for _ in range(turns):
        await asyncio.sleep(0.002)
    while not task.done():
        task.cancel()
        await asyncio.sleep(0)
    if not task.cancelled():
        await task.result().cancel()
    await _closed_by_a_caller_that_is_cancelled(jail)
    assert _added(before) == {}


async def _closed_by_a_caller_that_is_cancelled(jail: JailSandbox) -> None:
    closing = asyncio.ensure_future(jail.aclose())
    await asyncio.sleep(0)
    while not closing.done():
        closing.cancel()
        await asyncio.sleep(0)


async def test_closed_by_a_caller_that_is_cancelled_nothing_is_left() -> None:
    before = _left()
    jail = JailSandbox(tier="namespaces")
    assert (await run(jail, "1")).output == 1
    await jail.execute("import os\nos.fork()\nwhile True: pass")
    await _closed_by_a_caller_that_is_cancelled(jail)
    assert _added(before) == {}


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
async def test_many_executions_leak_nothing(count: int) -> None:
    before = _left()
    async with JailSandbox(tier="namespaces") as jail:
        for _ in range(20):
            await run(jail, "1")
        warm = _left()

        async def some(n: int) -> None:
            for _ in range(n):
                assert (await run(jail, "import os\nos.fork() or os._exit(0)\n1")).output == 1

        await asyncio.gather(*(some(count // 4) for _ in range(4)))
        await _until(lambda: len(_left()["processes"]) <= len(warm["processes"]) + 30)
        now = _left()
    assert len(now["files"]) <= len(warm["files"]) + 60  # spares and what four at once had
    assert now["mounts"] <= warm["mounts"]
    assert now["temporary"] <= before["temporary"]
    assert _added(before) == {}


HOST = """
import asyncio
from hatchway.sandboxes.jail import JailSandbox
CODE = '''
import os, time
if os.fork() == 0:
    os.setsid()
    os.fork()
    time.sleep(60)
tell()
time.sleep(60)
'''
async def main():
    jail = JailSandbox(tier={tier!r}, python={python!r})
    for execution in [await jail.execute(CODE, ["tell"]) for _ in range(3)]:
        await execution.next()
    print("running", flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.parametrize("tier", ["namespaces", "landlock"])
def test_nothing_survives_a_host_that_is_killed(tier: str) -> None:
    python = _python_for(tier)
    host = subprocess.Popen(
        [sys.executable, "-c", HOST.format(tier=tier, python=python)], stdout=subprocess.PIPE, text=True
    )
    assert host.stdout is not None
    assert host.stdout.readline() == "running\n"
    groups = _cgroups(host.pid)
    below = set(tree.descendants(host.pid))
    assert len(below) > 6
    host.kill()
    host.communicate()
    deadline = time.monotonic() + 5
    while (alive := {pid for pid in below if tree.stat(pid) is not None}) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive
    while _cgroups(host.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _cgroups(host.pid), groups


NEVER_CLOSED = """
import asyncio, gc
from hatchway.sandboxes.jail import JailSandbox
async def main(seconds):
    jail = JailSandbox()
    async def run():
        await (await jail.execute("1")).next()
    async def at_last():
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(seconds)
            await run()
    await run()
    await run()
    ending = asyncio.create_task(at_last())
    await asyncio.sleep(0)
for n in range(12):
    asyncio.run(main(n * 0.001))
    gc.collect()
"""


def test_a_loop_that_ends_with_an_open_jail_is_not_told_of_tasks() -> None:
    """Spares were made by a timer of the loop: also while it ended, when nobody waits for new tasks any more."""
    ended = subprocess.run([sys.executable, "-c", NEVER_CLOSED], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


KILLED_EARLY = """
import asyncio, os, signal
from hatchway.sandboxes.jail import JailSandbox
made = os.mkdir
def mkdir(path, *args):
    made(path, *args)
    if "/hatchway-" in path:
        print(path, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
os.mkdir = mkdir
async def main():
    await JailSandbox(tier="namespaces").execute("1")
asyncio.run(main())
"""


def test_no_cgroup_survives_a_host_that_is_killed_the_moment_it_made_it() -> None:
    done = subprocess.run([sys.executable, "-c", KILLED_EARLY], capture_output=True, text=True, timeout=60)
    if not done.stdout:
        pytest.skip("no memory cgroup can be made here")
    assert done.returncode == -signal.SIGKILL
    folder = Path(done.stdout.strip())
    deadline = time.monotonic() + 5
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not folder.exists()


REFUSED = """
import asyncio, errno, json, sys
from hatchway.core.errors import SandboxUnavailable
from hatchway.core.results import ExecutionResult
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.wall import seccomp
seccomp.no_new_privs()
rules = seccomp.for_each(sys.argv[1], seccomp.refuse(errno.EPERM))
seccomp.install(seccomp.assemble(rules, default=seccomp.ALLOW))
async def tried(**settings):
    async with JailSandbox(python=sys.argv[2], **settings) as jail:
        try:
            return (await (await jail.execute("1")).next()).tier
        except SandboxUnavailable as e:
            return [e.message, e.hint]
seen = JailSandbox.probe()
tiers = [asyncio.run(tried(tier=tier)) for tier in (None, "namespaces", "landlock")]
print(json.dumps([*tiers, seen.tier]))
"""


def test_refused_namespaces_fall_to_landlock_and_say_so() -> None:
    python = _python_for("landlock")
    done = _refused("unshare", python)
    fallen, forced, weaker, _ = json.loads(done.stdout)
    assert (fallen, weaker) == ("landlock", "landlock")
    assert forced[0] == f"the namespaces tier is refused here: unshare({_first_flags():#x}): Operation not permitted"
    assert forced[1]
    assert done.stderr.count("the jail holds by Landlock only") == 1  # of two jails


def test_where_neither_works_the_reasons_are_told() -> None:
    python = _python_for("landlock")
    done = _refused("unshare landlock_create_ruleset", python)
    fallen, _, landlock, tier = json.loads(done.stdout)
    assert fallen[0].startswith("no wall can be built here. the namespaces tier is refused here: unshare(")
    assert landlock[0] == "the landlock tier is refused here: it needs Landlock version 6, this kernel has none"
    assert tier is None


def _refused(calls: str, python: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", REFUSED, calls, python]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)


def _first_flags() -> int:
    return 0x20000 if os.geteuid() == 0 else 0x7C020000


def _python_for(tier: str) -> str:
    """For root the landlock tier needs an interpreter that others can reach."""
    real = os.path.realpath(getattr(sys, "_base_executable", sys.executable))  # not a copy in a venv
    if tier == "namespaces" or os.geteuid() != 0 or all(p.stat().st_mode & 1 for p in Path(real).parents):
        return sys.executable
    if not os.path.exists("/usr/bin/python3"):
        pytest.skip(f"{real} is closed to other users, and there is no /usr/bin/python3")
    return "/usr/bin/python3"


def _wait_dead(pid: int) -> None:
    """Without a turn of the event loop."""
    while (seen := tree.stat(pid)) is not None and not seen.is_zombie:
        time.sleep(0.001)


def _keepers() -> list[int]:
    def line(pid: int) -> bytes:
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return b""  # it is gone

    return [pid for pid in tree.children(os.getpid()) if b"keeper.py" in line(pid)]


def _left() -> dict[str, set[Any]]:
    """What a leak would add to."""
    return {
        "processes": set(tree.descendants(os.getpid())),
        "files": set(os.listdir("/proc/self/fd")),
        "mounts": {m for m in _mounts() if not re.search(r" - (overlay|nsfs) |/containers/|-engine-", m)},
        "cgroups": set(_cgroups(os.getpid())),
        "temporary": {p.name for p in Path("/tmp").glob(f"hatchway-*{os.getpid()}*")},
    }


def _added(before: dict[str, set[Any]]) -> dict[str, set[Any]]:
    """What is there and was not; that something else went away meanwhile, an engine's mount or a file, is no leak."""
    return {what: added for what, now in _left().items() if (added := now - before[what])}


def _mounts() -> list[str]:
    """All but those a container engine beside us comes and goes with."""
    return Path("/proc/self/mountinfo").read_text().splitlines()


def _cgroups(pid: int) -> list[str]:
    found = os.walk("/sys/fs/cgroup")  # unlike a glob it does not mind folders of others that go away meanwhile
    return sorted(
        f"{folder}/{name}" for folder, names, _ in found for name in names if name.startswith(f"hatchway-{pid}-")
    )


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():
            await asyncio.sleep(0.01)
