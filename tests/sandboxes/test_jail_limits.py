"""Each limit of the jail has a test that trips it, in both tiers, and an error that names its field."""

from __future__ import annotations

import os
import textwrap
from collections.abc import AsyncIterator, Callable
from dataclasses import fields
from typing import Any

import pytest

from hatchway.core.calls import FunctionCall, FunctionSignature, Waiting
from hatchway.core.errors import CodeLimitError, CodeTimeoutError, InvalidSetting
from hatchway.core.limits import MIB, Limits
from hatchway.core.results import ExecutionResult
from hatchway.sandboxes.jail import JailSandbox

pytestmark = pytest.mark.anyio


@pytest.fixture
async def jail(make_jail: Callable[..., JailSandbox]) -> AsyncIterator[JailSandbox]:
    async with make_jail(spares=0) as sandbox:
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


async def over(jail: JailSandbox, limit: str, code: str, **limits: Any) -> CodeLimitError:
    """The error of code that goes over one limit; the next action works."""
    with pytest.raises(CodeLimitError) as raised:
        await run(jail, code, **limits)
    assert raised.value.limit == limit
    assert raised.value.hint == f"raise Limits.{limit}, or let the code take less"
    assert (await run(jail, "1")).output == 1
    return raised.value


async def test_processes(jail: JailSandbox) -> None:
    code = """
        import os, time
        for _ in range(40):
            if os.fork() == 0:
                time.sleep(20)
    """
    await over(jail, "processes", code, processes=20)


async def test_processes_past_the_interpreter(jail: JailSandbox) -> None:
    """By the system call itself: the kernel refuses, or the supervisor sees it and kills."""
    code = """
        import ctypes, os, time
        libc, n = ctypes.CDLL(None, use_errno=True), 0
        while (pid := libc.fork()) >= 0:
            if pid == 0:
                libc.pause()
            n += 1
        told = os.strerror(ctypes.get_errno())
        time.sleep(1)
        n, told
    """
    killed_for, started, told = "", 0, ""
    try:
        started, told = (await run(jail, code, processes=20)).output
    except CodeLimitError as e:
        killed_for = e.limit
    if killed_for and _are_counted_together(jail):
        assert killed_for == "processes"
        return
    assert 15 <= started < 20 or _are_counted_together(jail)
    assert told == "Resource temporarily unavailable"


def _are_counted_together(jail: JailSandbox) -> bool:
    """Whether the kernel counts all tasks of the user: as others of them end, the code may start more than its own."""
    return jail.tier == "landlock" and os.geteuid() != 0


async def test_processes_are_counted_for_each_jail_alone(jail: JailSandbox) -> None:
    if _are_counted_together(jail):
        pytest.skip("without a user namespace the kernel counts all tasks of an ordinary user together")
    code = "import os, time\nfor _ in range(12):\n    if os.fork() == 0: time.sleep(20)\n'ok'"
    async with jail.session(limits=Limits(processes=16)) as one, jail.session(limits=Limits(processes=16)) as other:
        assert [(await run(s, code, processes=16)).output for s in (one, other)] == ["ok", "ok"]


async def test_threads(jail: JailSandbox) -> None:
    code = """
        import threading, time
        while True:
            threading.Thread(target=time.sleep, args=(9,), daemon=True).start()
    """
    error = await over(jail, "processes", code, processes=20)
    assert "can't start new thread" in error.message or error.message == "the code went over its limit of processes"


async def test_as_many_threads_as_there_may_be(jail: JailSandbox) -> None:
    code = """
        from concurrent.futures import ThreadPoolExecutor
        from threading import Barrier
        together = Barrier(50)
        with ThreadPoolExecutor(50) as pool:
            made = list(pool.map(lambda n: (len(bytes(300_000)), together.wait(9))[0], range(50)))
        sum(made)
    """
    assert (await run(jail, code)).output == 50 * 300_000


async def test_open_files(jail: JailSandbox) -> None:
    error = await over(jail, "open_files", "held = [open('/dev/null') for _ in range(40)]", open_files=32)
    assert error.message.endswith("OSError: [Errno 24] Too many open files: '/dev/null'")


async def test_a_session_cannot_take_all_descriptors_under_way_from_its_neighbours(jail: JailSandbox) -> None:
    """The kernel counts those in sockets per user, against the limit of whoever sends: a new child sends some too."""
    code = """
        import array, resource, socket
        try: resource.setrlimit(resource.RLIMIT_NOFILE, (20_000, 20_000))
        except ValueError: pass
        held, fds = [], array.array('i', [0] * 250)
        try:
            for _ in range(40):
                held += socket.socketpair()
                held[-1].setblocking(False)
                while True:
                    try: held[-1].sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
                    except BlockingIOError: break
        except OSError:
            pass
        resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    """
    async with jail.session() as greedy:
        assert (await run(greedy, code)).output == 512
        assert (await run(jail, "1 + 1")).output == 2


async def test_code_that_lowers_its_own_limit_is_held_to_the_next_action_too(jail: JailSandbox) -> None:
    lower = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (60, 70))"
    async with jail.session() as session:
        await run(session, lower)
        result = await run(session, "resource.getrlimit(resource.RLIMIT_NOFILE)", open_files=50)
        assert result.output == (50, 70)
        result = await run(session, "resource.getrlimit(resource.RLIMIT_NOFILE)", open_files=90)
    assert result.output == (70, 70)


@pytest.mark.parametrize("is_reaped", [True, False])
async def test_cpu_of_descendants_is_told(jail: JailSandbox, is_reaped: bool) -> None:
    code = f"""
        import os, time
        read, write = os.pipe()
        if (pid := os.fork()) == 0:
            if not {is_reaped} and os.fork():
                os._exit(0)  # the other one is an orphan
            while time.process_time() < 0.4: pass
            os.write(write, b"x")
            time.sleep(0 if {is_reaped} else 30)
            os._exit(0)
        os.read(read, 1)
        os.waitpid(pid, 0)
        None
        """
    result = await run(jail, code)
    assert 0.3 < result.usage.cpu_seconds < 5


async def test_signals_that_wait_and_timers(jail: JailSandbox) -> None:
    """The kernel counts them per user: all that one execution could queue would be missing to its caller."""
    code = """
        import ctypes, errno, os, signal
        libc = ctypes.CDLL(None, use_errno=True)
        signal.pthread_sigmask(signal.SIG_BLOCK, [40])
        queued, timer = 0, ctypes.c_void_p()
        while queued < 5000 and not libc.sigqueue(os.getpid(), 40, 0):
            queued += 1
        refused = ctypes.get_errno()
        queued <= 512, errno.errorcode[refused], libc.timer_create(1, None, ctypes.byref(timer))
    """
    assert (await run(jail, code)).output == (True, "EAGAIN", -1)


async def test_huge_pages_that_no_limit_counts(jail: JailSandbox) -> None:
    code = """
        import mmap
        try:
            mmap.mmap(-1, 2 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)
        except OSError as e:
            print(e)
    """
    assert (await run(jail, code)).stdout == "[Errno 1] Operation not permitted\n"


async def test_file_bytes(jail: JailSandbox) -> None:
    error = await over(jail, "file_bytes", "open('f', 'wb').write(bytes(2 << 20))", file_bytes=MIB)
    assert error.message.endswith("OSError: [Errno 27] File too large")


async def test_disk_bytes(jail: JailSandbox) -> None:
    code = "for n in range(9): open(str(n), 'wb').write(bytes(1 << 20))\nimport time\ntime.sleep(20)"
    error = await over(jail, "disk_bytes", code, disk_bytes=4 * MIB)
    if jail.tier == "namespaces":
        assert error.message.endswith("OSError: [Errno 28] No space left on device")


async def test_disk_files(jail: JailSandbox) -> None:
    code = "for n in range(99): open(str(n), 'w').close()\nimport time\ntime.sleep(20)"
    error = await over(jail, "disk_files", code, disk_files=50)
    if jail.tier == "namespaces":
        assert "OSError: [Errno 28] No space left on device" in error.message


@pytest.mark.parametrize("prologue", ["", "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\n"])
async def test_cpu_seconds(jail: JailSandbox, prologue: str) -> None:
    error = await over(jail, "cpu_seconds", prologue + "while True: pass", cpu_seconds=1, wall_seconds=20)
    assert error.message == "the code went over its limit of cpu_seconds"


async def test_value_bytes(jail: JailSandbox) -> None:
    with pytest.raises(CodeLimitError) as raised:
        await run(jail, "'x' * 5000", value_bytes=1000)
    assert raised.value.message == "the output takes more bytes on the wire than Limits.value_bytes, 1000"
    assert raised.value.hint == "raise Limits.value_bytes, or let the code take less"
    assert raised.value.limit == "value_bytes"
    assert (await run(jail, "'x' * 500", value_bytes=1000)).output == "x" * 500


@pytest.mark.parametrize(
    ("limit", "code", "message"),
    [
        ("calls", "for _ in range(9): f()", "the code made more than 3 tool calls"),
        (
            "pending_calls",
            "import asyncio\nawait asyncio.gather(*(g() for _ in range(9)))",
            "more than 3 calls were unanswered at a time",
        ),
    ],
)
async def test_calls(jail: JailSandbox, limit: str, code: str, message: str) -> None:
    functions = ["f", FunctionSignature(name="g", is_async=True)]
    execution = await jail.execute(code, functions, limits=Limits(**{limit: 3}))

    async def drive() -> None:
        while isinstance(event := await execution.next(), FunctionCall | Waiting):
            if isinstance(event, FunctionCall) and limit == "calls":
                await execution.provide_result(None)

    with pytest.raises(CodeLimitError) as raised:
        await drive()
    assert (raised.value.limit, raised.value.message) == (limit, message)


def test_every_limit_has_a_default_and_is_positive() -> None:
    for field in fields(Limits):
        assert getattr(Limits(), field.name) > 0
        with pytest.raises(InvalidSetting, match=rf"Limits.{field.name} must be a positive number, not 0"):
            Limits(**{field.name: 0})


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
    with pytest.raises((CodeTimeoutError, CodeLimitError)) as raised:
        await run(jail, code, wall_seconds=0.5)
    if isinstance(raised.value, CodeLimitError):  # the supervisor saw more processes before the time was over
        assert (raised.value.limit, "fork" in code, _are_counted_together(jail)) == ("processes", True, True)
    assert (await run(jail, "1")).output == 1
