"""The pool of workers: one for the process, over loops and threads; sealed; gone when the host is."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from textwrap import dedent

import pytest

from hatchway.core.errors import CodeRuntimeError
from hatchway.sandboxes.monty import MontySandbox, pool
from hatchway.sandboxes.wall import landlock
from hatchway.testing.conformance.drive import next_call, next_result, run, started

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

BEGIN = """
import asyncio, os, sys
from hatchway.core.errors import *
from hatchway.sandboxes.monty import MontySandbox, pool
sandbox = MontySandbox()
async def output(code):
    execution = await sandbox.execute(code)
    return (await execution.next()).output
def workers():
    return [lease._pid for lease in pool._pool._leases]
"""


def python(script: str, *, temp: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A host process of its own, with a folder of its own for what it leaves behind."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", BEGIN + dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "TMPDIR": str(temp), **variables},
    )


def is_running(pid: int) -> bool:
    """Whether a process is there and not just a name to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pid: int, seconds: float = 5.0) -> bool:
    until = time.monotonic() + seconds
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not is_running(pid)


def test_one_pool_for_all_sandboxes_and_closed_with_the_last(tmp_path: Path) -> None:
    script = """
        async def main():
            async with MontySandbox() as one:
                await one.execute("1")
                shared = pool._pool
                async with MontySandbox() as two:
                    await two.execute("1")
                    print(pool._pool is shared)
                print(pool._pool is shared)
                execution = await one.execute("1 + 1")
                print((await execution.next()).output)
            print(pool._pool)
        asyncio.run(main())
    """
    ended = python(script, temp=tmp_path)
    assert (ended.stdout.split(), ended.stderr) == (["True", "True", "2", "None"], "")


def test_one_loop_after_another_and_loops_in_threads() -> None:
    sandbox = MontySandbox()
    for n in range(3):
        assert asyncio.run(run(sandbox, f"{n} + 1")).output == n + 1
    outputs: list[object] = []

    def in_thread(n: int) -> None:
        outputs.append(asyncio.run(run(sandbox, f"sum(range({n}))")).output)

    threads = [threading.Thread(target=in_thread, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(sandbox.aclose())
    assert sorted(map(str, outputs)) == sorted(str(sum(range(n))) for n in range(8))


def test_a_process_that_closes_nothing_ends_quietly(tmp_path: Path) -> None:
    script = """
        print(asyncio.run(output("1 + 1")))
        async def leave_waiting():
            execution = await sandbox.execute("f()", ["f"])
            await execution.next()
            await sandbox.type_check("f()", "def f() -> int: ...")
            print(*workers())
        asyncio.run(leave_waiting())
    """
    ended = python(script, temp=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    first, *pids = map(int, ended.stdout.split())
    assert first == 2
    assert all(gone(pid) for pid in pids), "workers outlive their host"
    assert len(pids) == 2
    assert list(tmp_path.iterdir()) == []


@linux_only
def test_a_host_that_is_killed_takes_its_spinning_workers_along(tmp_path: Path) -> None:
    script = """
        async def main():
            await sandbox.execute("while True: pass")
            print(*workers(), flush=True)
            await asyncio.sleep(60)
        asyncio.run(main())
    """
    command = [sys.executable, "-c", BEGIN + dedent(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}) as host:
        assert host.stdout is not None
        (pid,) = map(int, host.stdout.readline().split())
        assert is_running(pid)
        host.send_signal(signal.SIGKILL)
        host.wait()
        assert gone(pid)


def test_a_forked_child_is_told_that_monty_does_not_work_there_and_harms_nothing(tmp_path: Path) -> None:
    script = """
        loop = asyncio.new_event_loop()
        async def begin():
            execution = await sandbox.execute("f() + 1", ["f"])
            await execution.next()
            return execution
        waiting = loop.run_until_complete(begin())
        child = os.fork()
        if not child:
            try:
                asyncio.run(output("2 + 2"))
            except SandboxUnavailable as e:
                print(e, flush=True)
            sys.exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        async def end():
            await waiting.provide_result(41)
            print((await waiting.next()).output)
            await sandbox.aclose()
        loop.run_until_complete(end())
        loop.close()
    """
    ended = python(script, temp=tmp_path)
    assert ended.stderr == ""
    assert ended.stdout.splitlines() == [
        "Monty was started before this process was forked, and does not work in the child",
        "start processes with multiprocessing's 'spawn' or 'forkserver'",
        "3",
        "42",
    ]


def test_where_nothing_can_seal_a_worker_it_runs_all_the_same_and_the_probe_says_so(tmp_path: Path) -> None:
    script = """
        sys.executable = "/no/such/python"
        print(asyncio.run(output("1 + 1")))
        found = MontySandbox.probe()
        print(found.state, found.tier, found.reason, sep="; ")
    """
    ended = python(script, temp=tmp_path)
    assert ended.stderr == ""
    assert ended.stdout.splitlines() == [
        "2",
        "usable; language; language-level only: the interpreter is the only wall, the kernel adds none here",
    ]


def test_a_binary_that_does_not_run_is_unusable_with_a_reason(tmp_path: Path) -> None:
    script = """
        found = MontySandbox.probe()
        print(found.state, found.tier, found.reason, found.hint, sep="; ")
        try:
            asyncio.run(output("1"))
        except SandboxUnavailable as e:
            print(e.message)
    """
    ended = python(script, temp=tmp_path, MONTY_BIN="/bin/false")
    assert ended.stderr == ""
    probed, used = ended.stdout.splitlines()
    crashed = r"monty worker crashed while (waiting for a reply|sending a request) \(exit status: 1\)"
    assert re.fullmatch(
        rf"installed_but_unusable; None; a worker does not run: {crashed}; pip install --force-reinstall hatchway",
        probed,
    )
    assert re.fullmatch(f"Monty's workers do not start: {crashed}", used)
    assert list(tmp_path.iterdir()) == []


def test_without_the_package_the_import_works_and_the_first_use_says_what_to_install(tmp_path: Path) -> None:
    script = """
        import sys
        sys.modules["pydantic_monty"] = None
        from hatchway.core.errors import MissingExtra
        from hatchway.sandboxes.monty import MontySandbox
        import asyncio
        found = MontySandbox.probe()
        print(found.state, found.hint)
        try:
            asyncio.run(MontySandbox().execute("1"))
        except MissingExtra as e:
            print(e)
    """
    ended = subprocess.run([sys.executable, "-c", dedent(script)], capture_output=True, text=True, timeout=60)
    assert ended.stderr == ""
    assert ended.stdout.splitlines() == [
        "missing pip install 'hatchway'",
        "the package pydantic_monty is not installed",
        "pip install 'hatchway'",
    ]


def test_no_collection_holds_every_thread_while_monty_is_imported(tmp_path: Path) -> None:
    script = """
        import gc
        seen = []
        def look(phase, info):
            module = sys.modules.get("hatchway.sandboxes.monty.runtime")
            seen.append(module is not None and module.__spec__._initializing)
        async def first():
            gc.callbacks.append(look)
            gc.set_threshold(1, 1, 1)
            return await output("1 + 1")
        print(asyncio.run(first()), gc.isenabled(), any(seen), len(seen) > 0)
        from hatchway.sandboxes.monty import sandbox as module
        gc.disable()
        module._runtime_class()
        print(gc.isenabled())
    """
    ended = python(script, temp=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.split() == ["2", "True", "False", "True", "False"]


def test_importing_the_backend_does_not_import_monty() -> None:
    code = "import sys, hatchway.sandboxes.monty; print('pydantic_monty' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert told.stdout == "False\n"


@linux_only
def test_a_worker_is_sealed_by_the_kernel() -> None:
    async def status() -> str:
        async with MontySandbox() as sandbox, started(sandbox, "f()", ["f"]) as execution:
            await next_call(execution)
            return Path(f"/proc/{execution._lease._pid}/status").read_text()  # type: ignore[attr-defined]

    told = asyncio.run(status())
    assert re.search(r"^Seccomp:\s+2$", told, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\s+1$", told, re.MULTILINE)
    found = MontySandbox.probe()
    walls = "Landlock + seccomp" if landlock.abi() else "seccomp"
    assert (found.state, found.tier) == ("usable", "language")
    assert found.reason == f"the interpreter is the wall; its worker is sealed by {walls}"


def test_workers_are_given_back() -> None:
    async def use() -> int:
        async with MontySandbox() as sandbox:
            for _ in range(3):
                await run(sandbox, "1")
                with pytest.raises(CodeRuntimeError):
                    await run(sandbox, "1 / 0")
            async with started(sandbox, "f()", ["f"]) as execution:
                await next_call(execution)
            async with sandbox.session() as session:
                await run(session, "1")
            assert pool._pool is not None
            return len(pool._pool._leases)

    others = len(pool._pool._leases) if pool._pool else 0
    assert asyncio.run(use()) == others


def test_an_interrupt_at_the_terminal_leaves_workers_alone() -> None:
    async def interrupted() -> object:
        async with MontySandbox() as sandbox, started(sandbox, "f() + 1", ["f"]) as execution:
            await next_call(execution)
            os.kill(execution._lease._pid, signal.SIGINT)  # type: ignore[attr-defined]
            await asyncio.sleep(0.05)
            await execution.provide_result(41)
            return (await next_result(execution)).output

    assert asyncio.run(interrupted()) == 42


def test_executions_past_the_most_workers_wait_their_turn(tmp_path: Path) -> None:
    script = """
        pool.MOST_WORKERS = 3
        async def main():
            held = [await sandbox.execute("f()", ["f"]) for _ in range(3)]
            waiting = asyncio.ensure_future(sandbox.execute("1 + 1"))
            await asyncio.sleep(0.2)
            print(waiting.done())
            await held[0].cancel()
            print((await (await waiting).next()).output)
            cancelled = asyncio.ensure_future(sandbox.execute("1")), asyncio.ensure_future(sandbox.execute("2"))
            await asyncio.sleep(0.05)
            for one in cancelled:
                one.cancel()
            await sandbox.aclose()
            print(pool._pool)
        asyncio.run(main())
    """
    ended = python(script, temp=tmp_path)
    assert (ended.stdout.split(), ended.stderr) == (["False", "2", "None"], "")


def test_without_its_program_monty_says_what_to_install(tmp_path: Path) -> None:
    ran = python(
        """
        import pydantic_monty._binary as binary
        binary._script_dirs = binary._development_binary = lambda: []
        print(MontySandbox.probe())
        try:
            asyncio.run(output("1"))
        except SandboxUnavailable as e:
            print(e)
        """,
        temp=tmp_path,
        PATH=str(tmp_path),
        MONTY_BIN="",
    )
    told = "the program `monty`, which runs the code, is not installed"
    hint = "pip install --force-reinstall pydantic-monty"
    assert ran.stdout.splitlines() == [
        f"Availability(state='installed_but_unusable', tier=None, reason='{told}', hint='{hint}')",
        told,
        hint,
    ], ran.stderr
    assert list(tmp_path.iterdir()) == []


@linux_only
def test_whoever_is_cancelled_while_the_pool_ends_leaves_no_thread_and_no_worker(tmp_path: Path) -> None:
    ran = python(
        """
        import threading
        async def main(turns):
            async with MontySandbox() as sandbox:
                await (await sandbox.execute("1")).next()
                tasks = [asyncio.ensure_future(sandbox.execute("1 + 1")) for _ in range(4)]
                for _ in range(turns):
                    await asyncio.sleep(0.0005)
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
            for _ in range(500):
                if not left():
                    return
                await asyncio.sleep(0.01)
            sys.exit(f"after {turns} turns: {left()}")
        def left():
            threads = [t.name for t in threading.enumerate() if t.name == "hatchway monty"]
            with open(f"/proc/self/task/{os.getpid()}/children") as children:
                return threads + children.read().split()
        for turns in range(12):
            asyncio.run(main(turns))
        """,
        temp=tmp_path,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
