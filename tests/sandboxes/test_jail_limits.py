"""Each limit of the jail has a test that trips it."""

from __future__ import annotations

import textwrap
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hatchway.core.errors import CodeLimitError, CodeRuntimeError, CodeTimeoutError
from hatchway.core.limits import MIB, Limits
from hatchway.core.results import ExecutionResult
from hatchway.sandboxes.jail import JailSandbox

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", autouse=True)
def _usable() -> None:
    seen = JailSandbox.probe()
    if seen.tier != "namespaces":
        pytest.skip(f"{seen.reason} {seen.hint}")


@pytest.fixture
async def jail() -> AsyncIterator[JailSandbox]:
    async with JailSandbox(tier="namespaces", spares=0) as sandbox:
        yield sandbox


async def run(runs: Any, code: str, **limits: Any) -> ExecutionResult:
    execution = await runs.execute(textwrap.dedent(code), limits=Limits(**limits))
    result = await execution.next()
    assert isinstance(result, ExecutionResult)
    return result


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("x = bytearray(400 << 20)", id="at once"),
        pytest.param("x = []\nwhile True: x.append(bytes(1 << 20))", id="bit by bit"),
        pytest.param(
            """
            import os, time
            for _ in range(4):
                if os.fork() == 0:
                    x = b'x' * (60 << 20)
                    time.sleep(20)
            time.sleep(20)
            """,
            id="in descendants",
        ),
        pytest.param(
            """
            import mmap, os, time
            shared = mmap.mmap(-1, 200 << 20)
            for at in range(0, 200 << 20, 4096): shared[at] = 1
            time.sleep(20)
            """,
            id="shared",
        ),
    ],
)
async def test_memory(jail: JailSandbox, code: str) -> None:
    with pytest.raises(CodeLimitError) as over:
        await run(jail, "print('kept', flush=True)\n" + textwrap.dedent(code), memory_bytes=128 * MIB, wall_seconds=15)
    assert (over.value.limit, over.value.stdout) == ("memory_bytes", "kept\n")
    assert (await run(jail, "1")).output == 1


async def test_processes(jail: JailSandbox) -> None:
    code = """
        import ctypes, os, time
        libc, n = ctypes.CDLL(None, use_errno=True), 0
        while (pid := libc.fork()) >= 0:
            if pid == 0:
                libc.pause()
            n += 1
        n, os.strerror(ctypes.get_errno())
    """
    started, told = (await run(jail, code, processes=20)).output  # past the interpreter: the kernel itself refuses
    assert 15 <= started < 20
    assert told == "Resource temporarily unavailable"


async def test_processes_are_counted_for_each_jail_alone(jail: JailSandbox) -> None:
    code = "import os, time\nfor _ in range(12):\n    if os.fork() == 0: time.sleep(20)\n'ok'"
    async with jail.session(limits=Limits(processes=16)) as one, jail.session(limits=Limits(processes=16)) as other:
        assert [(await run(s, code, processes=16)).output for s in (one, other)] == ["ok", "ok"]


async def test_threads(jail: JailSandbox) -> None:
    code = """
        import threading, time
        n = 0
        try:
            while True:
                threading.Thread(target=time.sleep, args=(9,), daemon=True).start()
                n += 1
        except RuntimeError as e:
            told = str(e)
        import os
        print(n, told, flush=True)
        os._exit(7)
    """
    with pytest.raises(CodeRuntimeError) as ended:
        await run(jail, code, processes=20)
    assert ended.value.stdout.split(" ", 1)[1] == "can't start new thread\n"
    assert ended.value.message == "the interpreter died: exit code 7"


async def test_open_files(jail: JailSandbox) -> None:
    with pytest.raises(CodeRuntimeError) as over:
        await run(jail, "held = [open('/dev/null') for _ in range(40)]", open_files=32)
    assert over.value.message.endswith("OSError: [Errno 24] Too many open files: '/dev/null'")


async def test_file_bytes(jail: JailSandbox) -> None:
    with pytest.raises(CodeRuntimeError) as over:
        await run(jail, "open('/tmp/f', 'wb').write(bytes(2 << 20))", file_bytes=MIB)
    assert over.value.message.endswith("OSError: [Errno 27] File too large")


async def test_disk_bytes(jail: JailSandbox) -> None:
    with pytest.raises(CodeRuntimeError) as over:
        await run(jail, "for n in range(9): open(f'/tmp/{n}', 'wb').write(bytes(1 << 20))", disk_bytes=4 * MIB)
    assert over.value.message.endswith("OSError: [Errno 28] No space left on device")


async def test_disk_files(jail: JailSandbox) -> None:
    with pytest.raises(CodeRuntimeError) as over:
        await run(jail, "for n in range(99): open(f'/tmp/{n}', 'w').close()", disk_files=50)
    assert "OSError: [Errno 28] No space left on device" in over.value.message


async def test_cpu_seconds(jail: JailSandbox) -> None:
    with pytest.raises(CodeLimitError) as over:
        await run(jail, "while True: pass", cpu_seconds=1, wall_seconds=20)
    assert over.value.limit == "cpu_seconds"
    assert over.value.message == "the code went over its limit of cpu_seconds"


async def test_output_bytes(jail: JailSandbox) -> None:
    result = await run(jail, "import os\nfor _ in range(64): os.write(1, b'x' * 65536)", output_bytes=1000)
    assert len(result.stdout) < 1100
    assert f"{64 * 65536 - 1000} bytes cut" in result.stdout


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("while True: pass", id="spins"),
        pytest.param("import time\ntime.sleep(60)", id="sleeps"),
        pytest.param("import re\nre.match(r'(a+)+$', 'a' * 64 + 'b')", id="in C"),
        pytest.param("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", id="stopped"),
        pytest.param(
            "import signal\nfor n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n"
            "    except (OSError, ValueError): pass\nwhile True: pass",
            id="ignores signals",
        ),
        pytest.param("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", id="forks"),
    ],
)
async def test_wall_seconds(jail: JailSandbox, code: str) -> None:
    with pytest.raises(CodeTimeoutError):
        await run(jail, code, wall_seconds=0.5)
    assert (await run(jail, "1")).output == 1
