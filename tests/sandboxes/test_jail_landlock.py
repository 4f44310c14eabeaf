"""The second tier: what Landlock, seccomp and rlimits hold where namespaces are refused."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.errors import CodeLimitError, CodeRuntimeError, SandboxCrashed
from hatchway.core.limits import MIB, Limits
from hatchway.core.results import ExecutionResult
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.process.inside import tree
from hatchway.sandboxes.wall import landlock

pytestmark = pytest.mark.anyio

if landlock.abi() < 6:
    pytest.skip(f"needs Landlock version 6, this kernel has {landlock.abi()}", allow_module_level=True)


def _python() -> str | None:
    """For root the code runs as a uid that must be let through to its interpreter."""
    real = os.path.realpath(getattr(sys, "_base_executable", sys.executable))  # not a copy in a venv
    if os.geteuid() != 0 or all(p.stat().st_mode & 1 for p in Path(real).parents):
        return None
    if not os.path.exists("/usr/bin/python3"):
        pytest.skip(f"{real} is closed to other users, and there is no /usr/bin/python3")
    return "/usr/bin/python3"


@pytest.fixture
async def jail() -> AsyncIterator[JailSandbox]:
    async with JailSandbox(tier="landlock", python=_python()) as sandbox:
        yield sandbox


async def run(runs: Any, code: str, **limits: Any) -> ExecutionResult:
    execution = await runs.execute(textwrap.dedent(code), limits=Limits(**limits))
    result = await execution.next()
    assert isinstance(result, ExecutionResult)
    return result


async def test_the_tier_is_in_the_result(jail: JailSandbox) -> None:
    result = await run(jail, "print('hi')\n1 + 1")
    assert (result.output, result.stdout, result.tier, jail.tier) == (2, "hi\n", "landlock", "landlock")


async def test_the_walls_stand(jail: JailSandbox) -> None:
    code = """
        import ctypes, os
        libc = ctypes.CDLL(None)
        libc.prctl(39, 0, 0, 0, 0), libc.prctl(21, 0, 0, 0, 0), os.getuid()
    """
    no_new_privs, seccomp, uid = (await run(jail, code)).output
    assert (no_new_privs, seccomp) == (1, 2)
    assert uid == os.geteuid() if os.geteuid() else uid > 0x7000_0000


@pytest.mark.parametrize(
    "code",
    [
        "open('/proc/self/status')",
        "open('/etc/passwd')",
        "import os\nos.listdir('/')",
        "import os\nos.listdir('/tmp')",
        "import os\nos.kill(os.getppid(), 0)",
        "import socket\nsocket.socket()",
        f"open({__file__!r})",
        "open('/dev/shm/x', 'w')",
    ],
)
async def test_nothing_of_the_host_is_in_reach(jail: JailSandbox, code: str) -> None:
    with pytest.raises(CodeRuntimeError, match="PermissionError: "):
        await run(jail, code)


async def test_the_own_folder_is_writable_and_goes_with_the_code(jail: JailSandbox) -> None:
    code = """
        import os, tempfile
        with tempfile.NamedTemporaryFile() as f:
            f.write(b'x')
        for _ in range(2000):  # deeper than a recursive removal gets
            os.mkdir('d')
            os.chdir('d')
        os.mkdir('closed', 0)
        os.environ['HOME']
    """
    folder = (await run(jail, code)).output
    await jail.aclose()
    assert not list(Path(folder).parent.glob(Path(folder).name + "*"))


async def test_disk_bytes_are_watched(jail: JailSandbox) -> None:
    code = """
        for n in range(100):
            open(str(n), 'wb').write(bytes(1 << 20))
        import time
        time.sleep(20)
    """
    with pytest.raises(CodeLimitError) as over:
        await run(jail, code, disk_bytes=8 * MIB)
    assert over.value.limit == "disk_bytes"


async def test_processes_and_memory(jail: JailSandbox) -> None:
    with pytest.raises(CodeLimitError) as over:
        await run(jail, "x = []\nwhile True: x.append(bytes(1 << 20))", memory_bytes=128 * MIB)
    assert over.value.limit == "memory_bytes"
    with pytest.raises((CodeLimitError, CodeRuntimeError)):
        await run(jail, "import os, time\nfor _ in range(40):\n    os.fork() or time.sleep(9)\n1/0", processes=12)
    assert (await run(jail, "1")).output == 1


async def test_a_session_keeps_its_state(jail: JailSandbox) -> None:
    async with jail.session() as session:
        await run(session, "import math\nx = 41")
        assert (await run(session, "x + int(math.e) - 1")).output == 42


@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.slow)])
async def test_a_spawner_killed_from_outside_fails_what_runs_and_the_next_works(jail: JailSandbox, times: int) -> None:
    below: set[int] = set()
    for _ in range(times):  # the next one comes while the kernel has not told everybody yet
        assert (await run(jail, "1")).output == 1
        running = await jail.execute("import time\ntime.sleep(60)")
        await asyncio.sleep(0.1)
        ours = [p for p in tree.children(os.getpid()) if b"landlocked.py" in Path(f"/proc/{p}/cmdline").read_bytes()]
        below |= set(tree.descendants(ours[-1]))
        os.kill(ours[-1], signal.SIGKILL)
        with pytest.raises(SandboxCrashed, match="the process that supervises the code died"):
            await running.next()
        assert (await run(jail, "2")).output == 2
    async with asyncio.timeout(5):
        while any((seen := tree.stat(pid)) is not None and not seen.is_zombie for pid in below):
            await asyncio.sleep(0.01)


ROOTLESS = """
import asyncio, sys
from hatchway.core.errors import SandboxUnavailable
from hatchway.sandboxes.jail import JailSandbox

async def main():
    for tier in ("landlock", "namespaces"):
        try:
            async with JailSandbox(tier=tier, python=sys.argv[1] or None, spares=0) as jail:
                print((await (await jail.execute("1 + 1")).next()).output)
        except SandboxUnavailable as e:
            print(e.message)

asyncio.run(main())
"""


def test_a_root_of_a_small_user_namespace_is_an_ordinary_user(reachable_python: str | None) -> None:
    """As in a rootless container: there is no uid to give to the code. That of a real root is never given."""
    if shutil.which("unshare") is None:
        pytest.skip("needs the command unshare")
    unshare = ["unshare", "--user", "--map-root-user"]
    if (tried := subprocess.run([*unshare, "true"], capture_output=True, text=True)).returncode:
        pytest.skip(f"no user namespace here: {tried.stderr.strip()}")
    command = [*unshare, sys.executable, "-c", ROOTLESS, reachable_python or ""]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    why = "tier is refused here: this user namespace has no uid but that of root outside"
    refused = [f"the landlock {why}", f"the namespaces {why}"]
    assert done.stdout.splitlines() == (["2", "2"] if os.geteuid() else refused), done.stderr
