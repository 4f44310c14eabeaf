"""The engine itself in trouble: each kind is told apart, and nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from hatchway.core.errors import SandboxCrashed, SandboxUnavailable
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeExecution
from hatchway.executors import CodeExecutionInput, ContainerCodeExecutor, InvocationContext
from hatchway.sandboxes.container import ContainerSandbox
from hatchway.sandboxes.container.engine import Engine
from hatchway.sandboxes.container.owner import is_orphan, labels

pytestmark = pytest.mark.anyio
REPO = Path(__file__).parents[2]


SLEEPER = "import time\nprint('up', flush=True)\ntime.sleep(600)"


async def result_of(sandbox: ContainerSandbox, code: str) -> ExecutionResult:
    """Run code that calls nothing."""
    result = await (await sandbox.execute(code)).next()
    assert isinstance(result, ExecutionResult)
    return result


async def ended(execution: CodeExecution) -> None:
    """Until its own client has noticed too, the code waits for its answer."""
    while True:
        await execution.next()
        await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_an_engine_that_dies_mid_run_is_told_and_not_mixed_with_the_code(doomed_engine: int) -> None:
    up = asyncio.Event()
    ctx = InvocationContext(on_output=lambda stream, text: up.set())
    sandbox = ContainerSandbox(spares=0)
    execution = await sandbox.execute("ping()", ["ping"])
    await execution.next()
    running = asyncio.create_task(ContainerCodeExecutor().execute_code(ctx, CodeExecutionInput(SLEEPER)))
    await asyncio.wait_for(up.wait(), 60)
    os.kill(doomed_engine, signal.SIGKILL)
    with pytest.raises(SandboxCrashed) as told:
        await asyncio.wait_for(running, 60)
    assert told.value.message == "docker died while the code ran"
    with pytest.raises(SandboxCrashed):
        await asyncio.wait_for(ended(execution), 60)
    with pytest.raises(SandboxUnavailable, match="docker cannot be used: it is not running"):
        await sandbox.execute("1")
    await asyncio.wait_for(sandbox.aclose(), 60)


def test_who_may_not_use_the_engine_is_told_how_to(docker_engine: str) -> None:
    python = f"/usr/bin/python3.{sys.version_info.minor}"
    if not os.path.exists(python):
        pytest.skip(f"no {python} that another user can reach")
    path = os.pathsep.join([str(REPO / "src"), sysconfig.get_paths()["purelib"]])
    code = (
        "from hatchway.sandboxes.container import ContainerSandbox\n"
        "seen = ContainerSandbox.probe()\nprint(seen.state, seen.reason, seen.hint, sep='|')"
    )
    home = Path(docker_engine.removeprefix("unix://")).parent
    os.chmod(home, 0o711)
    ran = subprocess.run(
        [python, "-c", code],
        env={"PYTHONPATH": path, "PATH": os.environ["PATH"], "DOCKER_HOST": docker_engine, "HOME": "/"},
        capture_output=True,
        text=True,
        user=65534,
        group=65534,
        extra_groups=[],
    )
    assert ran.stdout.split("|")[:2] == ["installed_but_unusable", "this user may not use docker"], ran.stderr
    assert "usermod -aG docker" in ran.stdout


async def test_a_sweep_leaves_what_is_not_an_orphan(docker_engine: str) -> None:
    async with ContainerSandbox(spares=0) as sandbox, sandbox.session() as session:
        assert await Engine().sweep() == []
        result = await (await session.execute("6 * 7")).next()
        assert getattr(result, "output", None) == 42


def test_an_orphan_is_known_by_its_dead_owner_on_this_machine_only() -> None:
    (label,) = labels().values()
    place, pid, started = label.split(".")
    dead = subprocess.Popen(["true"])
    dead.wait()
    assert not is_orphan(label)
    assert is_orphan(f"{place}.{pid}.{int(started) + 1}")  # the pid was used again
    assert is_orphan(f"{place}.{dead.pid}.1")
    assert not is_orphan(f"elsewhere.{dead.pid}.1")
    assert not is_orphan("rubbish")
    assert not is_orphan(f"{place}.x.y")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("Cannot connect to the Docker daemon at unix:///x.", "docker cannot be used: it is not running"),
        ("permission denied while trying to connect to the Docker daemon socket", "this user may not use docker"),
        ("Error: No such image: a:1", "the image a:1 is not on this machine"),
        ("Unable to find image 'a:1' locally\ndocker: Error response", "the image a:1 is not on this machine"),
        ("exec: python3: executable file not found", "the image a:1 has not the command it is started with"),
        ("error waiting for container: unexpected EOF", "docker died while the code ran"),
        ("docker: Error: OCI runtime", "docker did not run the container: docker: Error: OCI runtime"),
        ("", "docker did not run the container: it says nothing"),
    ],
)  # fmt: skip
def test_what_the_client_says_means_something(said: str, message: str) -> None:
    error = Engine().meaning(said, "a:1")
    assert error.message == message
    assert error.hint


async def test_an_engine_that_does_not_answer(tmp_path: Path) -> None:
    client = tmp_path / "docker"
    client.write_text("#!/bin/sh\nexec sleep 60\n")
    client.chmod(0o755)
    with pytest.raises(SandboxUnavailable, match=r"it has not answered for 0\.2 s"):
        await Engine(str(client)).ask("version", seconds=0.2)
