"""ContainerSandbox in a real engine, beyond the conformance suite: files, pool, limits, attacks on the relay."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.calls import FunctionCall
from hatchway.core.errors import (
    CodeLimitError,
    CodeRuntimeError,
    CodeTimeoutError,
    InvalidSetting,
    SandboxCrashed,
    SandboxUnavailable,
)
from hatchway.core.limits import MIB, Limits
from hatchway.core.results import ExecutionResult
from hatchway.mode.mode import CodeMode
from hatchway.sandboxes import registry
from hatchway.sandboxes.container import ContainerSandbox

pytestmark = pytest.mark.anyio


def containers(pid: int | None = None) -> list[str]:
    """Every container there is of a process, running or not."""
    asked = ["docker", "ps", "--all", "--format={{.Names}}", f"--filter=name=hatchway-{pid or os.getpid()}-"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()


@pytest.fixture
def engine(docker_engine: str) -> Iterator[str]:
    """The engine; a test leaves no container in it."""
    yield docker_engine
    deadline = time.monotonic() + 5
    while containers() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert containers() == []


@pytest.fixture
def readable(tmp_path: Path) -> Path:
    """A folder the container's user can enter."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    (folder / "a.txt").write_text("alpha")
    (folder / "a.txt").chmod(0o644)
    return folder


async def end_of(runs: Any, code: str, limits: Limits | None = None, **given: Any) -> ExecutionResult:
    """Run code that calls nothing."""
    result = await (await runs.execute(code, limits=limits, **given)).next()
    assert isinstance(result, ExecutionResult)
    return result


async def test_what_is_granted_is_seen_read_only_and_files_come_back(engine: str, readable: Path) -> None:
    code = """
import os, pathlib
told = [pathlib.Path("/input/a.txt").read_text(), pathlib.Path("/input/more/b").read_text()]
for path in ("/input/a.txt", "/input/new", "/input/more/b", "/etc/x"):
    try:
        open(path, "w")
    except OSError as e:
        told.append(e.errno)
os.makedirs("/output/deep")
pathlib.Path("/output/deep/r.csv").write_text("1,2")
pathlib.Path("/output/ü\\n.txt").write_text("x")
os.symlink("/etc/passwd", "/output/link")
os.mkfifo("/output/fifo")
told
"""
    more = readable.parent / 'with,comma"and quote'
    more.write_text("beta")
    more.chmod(0o644)
    async with ContainerSandbox(spares=0, workspace_root=readable, file_mounts=[(more, "more/b")]) as sandbox:
        (readable / "more").mkdir(mode=0o755)
        (readable / "more" / "b").touch()
        result = await end_of(sandbox, code)
    assert result.output == ["alpha", "beta", 30, 30, 30, 30]
    assert [(file.name, file.content) for file in result.files] == [("deep/r.csv", b"1,2"), ("ü\n.txt", b"x")]


async def test_files_come_with_errors_and_timeouts_too(engine: str, readable: Path) -> None:
    async with ContainerSandbox(spares=0, workspace_root=readable) as sandbox:
        for end, error in (("1 / 0", CodeRuntimeError), ("while True: pass", CodeTimeoutError)):
            with pytest.raises(error) as told:
                await end_of(sandbox, f"open('/output/x', 'w').write('kept')\n{end}", Limits(wall_seconds=1))
            assert [(f.name, f.content) for f in told.value.files] == [("x", b"kept")]


async def test_a_session_keeps_its_output_and_gives_what_is_new(engine: str, readable: Path) -> None:
    async with ContainerSandbox(spares=0, workspace_root=readable) as sandbox, sandbox.session() as session:
        first = await end_of(session, "open('/output/a', 'w').write('1'); x = 20")
        second = await end_of(session, "open('/output/b', 'w').write('2'); x + len(open('/output/a').read())")
        third = await end_of(session, "x")
    assert [[f.name for f in result.files] for result in (first, second, third)] == [["a"], ["b"], []]
    assert second.output == 21


@pytest.mark.parametrize(
    ("code", "limits", "limit"),
    [
        ("for i in range(9): open(f'/output/{i}', 'w')", Limits(output_files=3), "output_files"),
        ("open('/output/x', 'wb').write(b'x' * 5000)", Limits(file_bytes=6000, disk_bytes=4096 * 3), ""),
        ("open('/output/x', 'wb').truncate(9_000_000)", Limits(file_bytes=99 * MIB, disk_bytes=MIB), "disk_bytes"),
    ],
)  # fmt: skip
async def test_the_quotas_of_files_hold(engine: str, readable: Path, code: str, limits: Limits, limit: str) -> None:
    async with ContainerSandbox(spares=0, workspace_root=readable) as sandbox:
        if not limit:
            assert (await end_of(sandbox, code, limits)).files[0].content == b"x" * 5000
            return
        with pytest.raises(CodeLimitError) as told:
            await end_of(sandbox, code, limits)
    assert told.value.limit == limit


UNTIL_FULL = """
import os
for number in range(10**6):
    try:
        with open({path}, "ab", 0) as f:
            f.write({data})
    except OSError as e:
        told = [e.errno, number]
        break
told
"""


async def test_scratch_and_inodes_are_held_by_the_kernel(engine: str) -> None:
    bytes_, files = (
        UNTIL_FULL.format(path="'/tmp/x'", data="b'x' * 1000"),
        UNTIL_FULL.format(path="f'/tmp/{number}'", data="b''"),
    )
    async with ContainerSandbox(spares=0) as sandbox:
        assert (await end_of(sandbox, bytes_, Limits(disk_bytes=MIB))).output == [28, 1049]
        assert (await end_of(sandbox, files, Limits(disk_files=100))).output == [28, 100]


async def test_a_spare_serves_one_action_and_is_never_used_again(engine: str) -> None:
    async with ContainerSandbox(spares=2) as sandbox:
        await sandbox.prestart()
        ready = set(containers())
        assert len(ready) == 2
        hosts = [
            (await end_of(sandbox, "import os\nopen('/tmp/mine', 'x')\nos.uname().nodename")).output for _ in range(4)
        ]
    assert len(set(hosts)) == 4


async def test_a_spare_that_died_is_not_used(engine: str) -> None:
    async with ContainerSandbox(spares=1) as sandbox:
        await sandbox.prestart()
        (name,) = containers()
        subprocess.run(["docker", "kill", name], check=True, capture_output=True)
        await asyncio.sleep(0.5)
        assert (await end_of(sandbox, "1 + 1")).output == 2


async def test_limits_of_another_action_get_a_container_of_their_own(engine: str) -> None:
    code = "open('/sys/fs/cgroup/memory/memory.limit_in_bytes').read().strip()"
    async with ContainerSandbox(spares=1) as sandbox:
        await sandbox.prestart()
        if (usual := (await end_of(sandbox, "import os\nos.path.exists('/sys/fs/cgroup/memory')")).output) is False:
            pytest.skip(f"no cgroup v1 in the container: {usual}")
        small = int((await end_of(sandbox, code, Limits(memory_bytes=100 * MIB))).output)
        large = int((await end_of(sandbox, code)).output)
    assert (small, large) == (148 * MIB, 560 * MIB)


async def test_a_memory_bomb_of_many_processes_is_the_memory_limit(engine: str) -> None:
    code = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        block = bytearray(os.urandom(1024) * 100 * 1024)
        time.sleep(60)
time.sleep(60)
"""
    async with ContainerSandbox(spares=0) as sandbox:
        with pytest.raises(CodeLimitError) as told:
            await end_of(sandbox, code, Limits(memory_bytes=200 * MIB, wall_seconds=20))
    assert told.value.limit == "memory_bytes"


RELAY = {
    "its descriptors": "import os\nos.listdir('/proc/1/fd')",
    "its memory": "open('/proc/1/mem', 'rb')",
    "its stdout": "open('/proc/1/fd/1', 'wb')",
    "ptrace": "import ctypes\nif ctypes.CDLL(None).ptrace(16, 1, 0, 0): raise PermissionError('attach')",
}


@pytest.mark.parametrize("what", RELAY)
async def test_the_relay_is_closed_to_the_code(engine: str, what: str) -> None:
    async with ContainerSandbox(spares=0) as sandbox:
        with pytest.raises(CodeRuntimeError, match="PermissionError"):
            await end_of(sandbox, RELAY[what])


async def test_signals_to_the_relay_do_nothing(engine: str) -> None:
    code = "import os, signal\nfor n in signal.Signals:\n    os.kill(1, n)\nping()"
    async with ContainerSandbox(spares=0) as sandbox:
        execution = await sandbox.execute(code, ["ping"])
        assert isinstance(await execution.next(), FunctionCall)
        await execution.provide_result(7)
        assert getattr(await execution.next(), "output", None) == 7


async def test_the_code_has_neither_stdin_nor_stdout_of_the_container(engine: str) -> None:
    code = "import os\n[os.readlink(f'/proc/self/fd/{n}').split(':')[0] for n in (0, 1, 2)]"
    async with ContainerSandbox(spares=0) as sandbox:
        assert (await end_of(sandbox, code)).output == ["/dev/null", "pipe", "pipe"]


async def test_a_flood_of_output_is_cut_and_does_not_hold_up_the_end(engine: str) -> None:
    code = "import os\nblock = b'x' * 2**16\nwhile True: os.write(1, block)"
    async with ContainerSandbox(spares=0) as sandbox:
        with pytest.raises(CodeTimeoutError) as told:
            await end_of(sandbox, code, Limits(wall_seconds=2))
    assert len(told.value.stdout) < 1.2 * MIB
    assert "bytes cut" in told.value.stdout


async def test_a_host_that_dies_takes_its_containers_along(engine: str) -> None:
    code = (
        "import asyncio, sys\nfrom hatchway.sandboxes.container import ContainerSandbox\n"
        "async def main():\n    sandbox = ContainerSandbox(spares=1)\n    await sandbox.prestart()\n"
        "    e = await sandbox.execute('while True: pass')\n    print('up', flush=True)\n    await e.next()\n"
        "asyncio.run(main())"
    )
    host = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    assert host.stdout.readline() == "up\n"
    assert containers(host.pid)
    host.kill()
    host.communicate()
    deadline = time.monotonic() + 20
    while containers(host.pid) and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
    assert containers(host.pid) == []


async def test_a_cancelled_start_leaves_no_container(engine: str) -> None:
    async with ContainerSandbox(spares=0) as sandbox:
        for seconds in (0.01, 0.05, 0.1):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(sandbox.execute("1"), seconds)
        for seconds in (0.2, 0.4):  # a quick engine is done by then
            with suppress(TimeoutError):
                await asyncio.wait_for(sandbox.execute("1"), seconds)
        assert (await end_of(sandbox, "1 + 1")).output == 2


def test_a_loop_that_ends_without_closing_leaves_no_container(engine: str) -> None:
    sandbox = ContainerSandbox(spares=1)

    async def once() -> Any:
        return (await end_of(sandbox, "6 * 7")).output

    assert asyncio.run(once()) == 42
    assert asyncio.run(once()) == 42
    asyncio.run(sandbox.aclose())


async def test_tools_go_through_the_gate(engine: str) -> None:
    def price(item: str) -> float:
        """A price."""
        return {"tea": 3.5}[item]

    async with ContainerSandbox(spares=0) as sandbox, CodeMode(sandbox, tools=[price]) as mode:
        result = await mode.run("price('tea') * 2")
    assert (result.output, result.tier) == (7.0, "container")


async def test_an_engine_that_refuses_and_an_image_that_is_missing_are_told(engine: str) -> None:
    async with ContainerSandbox(spares=0, runtime="no-such-runtime") as sandbox:
        with pytest.raises(SandboxCrashed, match=r"docker did not run the container: .*no-such-runtime"):
            await sandbox.execute("1")
    async with ContainerSandbox("nobody/nothing:1") as sandbox:
        with pytest.raises(SandboxUnavailable, match="docker pull nobody/nothing:1"):
            await sandbox.execute("1")


@pytest.mark.parametrize(
    "settings",
    [
        {"image": "--privileged"},
        {"engine": "rkt"},
        {"user": "0 0"},
        {"workspace_root": "/no/such/folder"},
        {"file_mounts": [("/etc", "/tmp/x")]},
    ],
)
def test_settings_that_are_none(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting):
        ContainerSandbox(**settings)


def test_auto_takes_the_jail_before_a_container_and_asks_no_engine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if registry.availability("jail").tier != "namespaces":
        pytest.skip("no namespaces here")
    (tmp_path / "docker").write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\nexit 1\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    registry.choose_auto.cache_clear()
    assert registry.choose_auto() == "jail"
    assert not (tmp_path / "asked").exists()
