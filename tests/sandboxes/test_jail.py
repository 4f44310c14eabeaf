"""The jail's walls, seen from inside and outside: each hole found in the prototypes has its test."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from glob import glob
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.calls import FunctionCall
from hatchway.core.errors import CodeRuntimeError, InvalidSetting, SandboxCrashed
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeExecution
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.process.inside import tree

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", autouse=True)
def _usable() -> None:
    seen = JailSandbox.probe()
    if seen.tier != "namespaces":
        pytest.skip(f"{seen.reason} {seen.hint}")


@pytest.fixture
async def jail() -> AsyncIterator[JailSandbox]:
    async with JailSandbox(tier="namespaces") as sandbox:
        yield sandbox


async def ended(execution: CodeExecution) -> ExecutionResult:
    result = await execution.next()
    assert isinstance(result, ExecutionResult)
    return result


async def run(sandbox: Any, code: str, **settings: Any) -> ExecutionResult:
    return await ended(await sandbox.execute(code, **settings))


async def test_a_result_says_its_tier_and_what_it_took(jail: JailSandbox) -> None:
    result = await run(jail, "print('hi')\n1 + 1")
    assert (result.output, result.stdout, result.tier, result.files) == (2, "hi\n", "namespaces", ())
    assert result.usage.wall_seconds > 0
    assert jail.tier == "namespaces"


async def test_every_wall_stands_around_the_code(jail: JailSandbox) -> None:
    text = (await run(jail, "open('/proc/self/status').read()")).output
    status = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (status["NoNewPrivs"], status["Seccomp"], status["Pid"], status["NSpid"]) == ("1", "2", "2", "2")
    assert status["Uid"].split() == ["65534"] * 4
    assert status["Groups"].strip() in ("", "65534") or os.geteuid() != 0


async def test_the_kernel_knows_the_code_by_a_uid_that_is_not_root(jail: JailSandbox) -> None:
    execution = await jail.execute("wait()", ["wait"])
    assert isinstance(await execution.next(), FunctionCall)
    uids = [_uid_of(pid) for pid in _guests()]
    assert uids
    assert all(uid == os.geteuid() if os.geteuid() else uid > 0x7000_0000 for uid in uids)
    await execution.cancel()


async def test_nothing_machine_wide_of_proc_is_there(jail: JailSandbox) -> None:
    found = await run(jail, "import os\nsorted(os.listdir('/proc')), os.path.exists('/proc/sys/kernel/core_pattern')")
    assert found.output == (["1", "2", "self", "thread-self"], False)


async def test_the_environment_of_the_host_is_nowhere(jail: JailSandbox) -> None:
    code = """
        import os
        own = open('/proc/self/environ').read()
        try:
            init = open('/proc/1/environ').read()
        except PermissionError:
            init = 'closed'
        own.split('=')[0], init, sorted(os.environ)
    """
    found = await run(jail, _dedented(code))
    assert found.output == ("PYTHONHASHSEED", "closed", ["HOME", "LANG", "PATH", "TMPDIR"])


async def test_granted_environment_is_there() -> None:
    async with JailSandbox(env={"GRANTED": "yes"}) as jail:
        assert (await run(jail, "import os\nos.environ['GRANTED']")).output == "yes"


async def test_kill_of_the_own_group_does_not_leave_the_pid_namespace(jail: JailSandbox) -> None:
    async with jail.session() as neighbour:
        await run(neighbour, "x = 1")
        with pytest.raises(CodeRuntimeError) as died:
            await run(jail, "import os\nos.kill(0, 9)")
        assert died.value.message == "the interpreter died: killed by signal SIGKILL"
        assert (await run(neighbour, "x")).output == 1
    assert (await run(jail, "2")).output == 2


async def test_the_code_has_its_channel_and_no_other_descriptor(jail: JailSandbox) -> None:
    with open(__file__) as _held:
        code = """
            import os
            links = [f"/proc/self/fd/{n}" for n in range(64)]
            [os.readlink(link).split(":")[0] for link in links if os.path.lexists(link)]
        """
        assert (await run(jail, _dedented(code))).output == ["/dev/null", "pipe", "pipe", "socket"]


async def test_a_forged_frame_carries_no_authority(jail: JailSandbox) -> None:
    code = """
        import os
        frame = b'{"type":"function_call","call_id":"7.7","function_name":"admin","args":[],"kwargs":{}}\\n'
        for n in range(3, 64):
            try:
                os.write(n, frame)
            except OSError:
                pass
        import time
        time.sleep(0.3)
        harmless()
    """
    execution = await jail.execute(_dedented(code), ["harmless"])
    call = await execution.next()
    assert isinstance(call, FunctionCall)  # the forged one was refused at the wall: nobody offered such a tool
    assert call.function_name == "harmless"
    await execution.cancel()


async def test_no_package_of_the_host_can_be_imported_and_the_library_can(jail: JailSandbox) -> None:
    code = """
        import asyncio, csv, ctypes, hashlib, json, lzma, multiprocessing, sqlite3, ssl, zoneinfo
        found = []
        for name in ('pytest', 'pydantic', 'hatchway', 'pip', 'anyio'):
            try:
                __import__(name)
            except ImportError:
                continue
            found.append(name)
        found, str(zoneinfo.ZoneInfo('Europe/Berlin')), sqlite3.connect(':memory:').execute('select 7').fetchone()
    """
    assert (await run(jail, _dedented(code))).output == ([], "Europe/Berlin", (7,))


async def test_the_interpreter_itself_can_be_started_and_pools_work(jail: JailSandbox) -> None:
    code = """
        import subprocess, sys
        from concurrent.futures import ProcessPoolExecutor
        import multiprocessing
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context('fork')) as pool:
            squares = list(pool.map(pow, [2, 3], [2, 2]))
        subprocess.run([sys.executable, '-c', 'print(6 * 7)'], capture_output=True).stdout, squares
    """
    assert (await run(jail, _dedented(code))).output == (b"42\n", [4, 9])


async def test_a_fork_says_nothing_of_its_own(jail: JailSandbox) -> None:
    result = await run(jail, "import os\nos.waitpid(os.fork() or os._exit(3), 0)[1] >> 8")
    assert (result.output, result.stderr) == (3, "")


async def test_orphans_are_reaped(jail: JailSandbox) -> None:
    code = """
        import os, time
        for _ in range(100):
            if os.fork() == 0:
                if os.fork() == 0:
                    os._exit(0)
                os._exit(0)
            os.wait()
        'ok'
    """
    assert (await run(jail, _dedented(code), limits=Limits(processes=24))).output == "ok"


async def test_signals_work_as_for_any_process(jail: JailSandbox) -> None:
    with pytest.raises(CodeRuntimeError) as died:
        await run(jail, "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nimport time\ntime.sleep(9)")
    assert died.value.message == "the interpreter died: killed by signal SIGTERM"


async def test_a_pipe_that_nobody_reads_is_an_error_and_not_the_end(jail: JailSandbox) -> None:
    code = """
        import os
        reader, writer = os.pipe()
        os.close(reader)
        try:
            os.write(writer, b'x')
        except BrokenPipeError:
            told = 'broken'
        told
    """
    assert (await run(jail, _dedented(code))).output == "broken"


async def test_the_filter_kills_calls_of_another_architecture(jail: JailSandbox) -> None:
    with pytest.raises(CodeRuntimeError) as died:
        await run(jail, "import ctypes\nctypes.CDLL(None).syscall(0x40000000 + 39)")
    assert died.value.message == "the interpreter died: killed by signal SIGSYS"


async def test_the_hash_seed_is_one_per_user_and_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One for all processes of a user, so that a run can change between them; another user's is another."""
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "own.key"))
    async with JailSandbox() as jail:
        first, second = [(await run(jail, "hash('x')")).output for _ in range(2)]
    async with JailSandbox() as other:
        third = (await run(other, "hash('x')")).output
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "another.key"))
    async with JailSandbox() as stranger:
        fourth = (await run(stranger, "hash('x')")).output
    assert first == second == third != fourth
    assert jail.hash_seed == other.hash_seed != stranger.hash_seed


async def test_random_numbers_differ_between_executions(jail: JailSandbox) -> None:
    numbers = [(await run(jail, "import random\nrandom.random()")).output for _ in range(3)]
    assert len(set(numbers)) == 3


@pytest.mark.parametrize("minor", [9, 10, 12, 13])
async def test_other_interpreters(minor: int) -> None:
    found = [
        *glob(f"/usr/bin/python3.{minor}"),
        *glob(os.path.expanduser(f"~/.pyenv/versions/3.{minor}.*/bin/python3.{minor}")),
    ]
    if not found:
        pytest.skip(f"there is no Python 3.{minor} here")
    async with JailSandbox(python=found[0]) as jail:
        code = "import sys, asyncio\nasync def f(): return sys.version_info[1]\nawait f()"
        assert (await run(jail, code)).output == minor


def test_a_python_that_is_none() -> None:
    with pytest.raises(InvalidSetting) as refused:
        JailSandbox(python="/nowhere/python")
    assert refused.value.hint == "try: /nowhere/python -V"


async def test_a_session_that_died_says_it_is_gone(jail: JailSandbox) -> None:
    async with jail.session() as session:
        assert (await run(session, "x = 1\nx")).output == 1
        with pytest.raises(CodeRuntimeError):
            await run(session, "import os\nos._exit(3)")
        with pytest.raises(SandboxCrashed) as gone:
            await session.execute("x")
        assert gone.value.message == "the session is gone: its interpreter died or was killed"


async def test_a_hundred_live_at_once(jail: JailSandbox) -> None:
    executions = [await jail.execute("wait()\n7", ["wait"]) for _ in range(100)]
    for execution in executions:
        assert isinstance(await execution.next(), FunctionCall)
    for execution in executions:
        await execution.provide_result(None)
    assert [(await ended(execution)).output for execution in executions] == [7] * 100


def _guests() -> Iterator[int]:
    """The processes of the code: those that live two pid namespaces below us."""
    for pid in tree.descendants(os.getpid()):
        text = Path(f"/proc/{pid}/status").read_text()
        levels = next(line.split()[1:] for line in text.splitlines() if line.startswith("NSpid:"))
        if len(levels) >= 3 and levels[-1] != "1":
            yield pid


def _uid_of(pid: int) -> int:
    return os.stat(f"/proc/{pid}").st_uid


def _dedented(code: str) -> str:
    import textwrap

    return textwrap.dedent(code)
