"""LocalCodeExecutor: what a program gets, what comes back, how it dies, and what is left of it: nothing."""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hatchway.core.errors import InvalidSetting, SandboxCrashed, SandboxUnavailable
from hatchway.core.limits import MIB, Limits
from hatchway.executors import (
    CodeExecutionInput,
    CodeExecutionResult,
    CodeExecutionResultPart,
    ExecFile,
    InvocationContext,
    LocalCodeExecutor,
    Outcome,
)

pytestmark = pytest.mark.anyio
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
TIMED_OUT = "timed out after 0.5 s: killed, with everything it had started\n"


async def run(code: str, language: str = "python", *files: ExecFile, **settings: object) -> CodeExecutionResult:
    """A program with a private place of its own."""
    executor = LocalCodeExecutor(**settings)  # type: ignore[arg-type]
    return await executor.execute_code(InvocationContext(), CodeExecutionInput(code, language, input_files=files))


async def gone(pid: int) -> bool:
    """Whether a process is gone, at once or within what a loaded machine takes to bury it."""
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists():
            return True
        await asyncio.sleep(0.02)
    return False


async def until(found: Callable[[], bool]) -> None:
    for _ in range(500):
        if found():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not happen")


async def test_python_prints_complains_and_exits() -> None:
    result = await run("import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(3)")
    assert result == CodeExecutionResult(stdout="out\n", stderr="err\n", exit_code=3)


async def test_a_program_that_raises_is_a_result() -> None:
    result = await run("x = 1\n1 / 0")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"
    assert 'File "<stdin>", line 2, in <module>' in result.stderr


@pytest.mark.parametrize(
    ("language", "program", "code", "stdout"),
    [
        ("shell", "sh", "read x <<E\n5\nE\necho $((x * 2))", "10\n"),
        ("bash", "bash", "a=(1 2 3); echo ${a[-1]} ${#a[@]}", "3 3\n"),
        ("node", "node", "console.log([1, 2].map(x => x * 2).join())", "2,4\n"),
        ("JavaScript", "node", "process.stdout.write(String(1n << 70n))", "1180591620717411303424"),
    ],
)
async def test_the_language_picks_the_interpreter(language: str, program: str, code: str, stdout: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program} on this machine")
    assert await run(code, language) == CodeExecutionResult(stdout=stdout, exit_code=0)


async def test_the_builders_give_copies() -> None:
    plain = LocalCodeExecutor()
    shell = plain.with_interpreter("/bin/sh").with_args(["-s", "one"]).with_timeout(5)
    assert (plain.interpreter, plain.args, plain.timeout) == (None, ("-",), 30.0)
    assert (shell.interpreter, shell.args, shell.timeout) == ("/bin/sh", ("-s", "one"), 5)
    assert (plain.stateful, plain.error_retry_attempts) == (False, 2)
    result = await shell.execute_code(InvocationContext(), CodeExecutionInput("echo $1"))
    assert result.stdout == "one\n"


async def test_other_arguments_alone_are_for_python() -> None:
    optimised = LocalCodeExecutor().with_args(["-O", "-"])
    result = await optimised.execute_code(InvocationContext(), CodeExecutionInput("assert False\nprint(__debug__)"))
    assert result.stdout == "False\n"


async def test_a_language_can_be_added() -> None:
    executor = LocalCodeExecutor().with_language("upper", "tr", ["a-z", "A-Z"])
    assert executor.languages == ("python", "shell", "bash", "node", "upper")
    result = await executor.execute_code(InvocationContext(), CodeExecutionInput("loud", "upper"))
    assert result.stdout == "LOUD"


def test_a_fixed_interpreter_says_which_languages_it_has() -> None:
    assert LocalCodeExecutor().with_interpreter("/usr/bin/bash").languages == ("bash",)
    assert LocalCodeExecutor().with_interpreter("/opt/ruby").languages == ("ruby",)


async def test_an_unknown_language_says_which_there_are() -> None:
    with pytest.raises(InvalidSetting) as refused:
        await run("DISPLAY 'HI'.", "cobol")
    assert str(refused.value) == "there is no language 'cobol' here\nthere are: python, shell, bash, node"


async def test_a_missing_interpreter_is_an_error_of_the_executor() -> None:
    with pytest.raises(SandboxUnavailable, match=r"^there is no interpreter 'nowhere-to-be-found' on this machine\n"):
        await run("1", interpreter="nowhere-to-be-found")


async def test_an_interpreter_that_cannot_be_started_is_an_error_of_the_executor(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF rubbish")
    broken.chmod(0o755)
    with pytest.raises(SandboxUnavailable) as refused:
        await run("1", interpreter=str(broken))
    assert str(refused.value) == f"the program cannot be started: [Errno 8] Exec format error: '{broken}'"
    assert (await run("print(1)")).stdout == "1\n"


@pytest.mark.parametrize("settings", [{"error_retry_attempts": 0}, {"timeout": 0}, {"timeout": -1.0}])
def test_settings_that_mean_nothing_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(InvalidSetting):
        LocalCodeExecutor(**settings)  # type: ignore[arg-type]


async def test_the_environment_is_what_is_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "secret")
    code = "import os\nprint(sorted(set(os.environ) - {'LC_CTYPE'}))"  # the last one is Python's own doing
    assert (await run(code)).stdout == "[]\n"
    assert (await run(code, env={"GRANTED": "1"})).stdout == "['GRANTED']\n"


async def test_the_program_has_no_descriptor_of_the_hosts(tmp_path: Path) -> None:
    with (tmp_path / "open").open("w") as held:
        os.set_inheritable(held.fileno(), True)
        result = await run("import os\nprint(sorted(os.listdir('/dev/fd'))[:4], os.isatty(0))")
    assert result.stdout == "['0', '1', '2', '3'] False\n"  # 3 is the listing itself


async def test_files_go_in_and_new_and_changed_ones_come_out() -> None:
    result = await run(
        "import os\nprint(open('data/in.csv').read(), end='')\nos.makedirs('out/deep')\n"
        "open('out/deep/new.bin', 'wb').write(bytes(range(256)))\nopen('changed', 'a').write(' more')",
        "python",
        ExecFile(name="data/in.csv", content=b"a,b\n"),
        ExecFile(name="changed", content=b"some"),
    )
    assert (result.stdout, result.exit_code, result.stderr) == ("a,b\n", 0, "")
    assert result.output_files == (
        ExecFile(name="changed", content=b"some more"),
        ExecFile(name="out/deep/new.bin", content=bytes(range(256))),
    )


async def test_files_come_out_of_a_program_that_failed_or_ran_out_of_time() -> None:
    failed = await run("open('half', 'w').write('1')\n1/0")
    late = await run("open('half', 'w').write('2')\nwhile True: pass", timeout=0.5)
    assert [file.content for file in (*failed.output_files, *late.output_files)] == [b"1", b"2"]


async def test_hostile_names_and_links_are_left_out_and_told(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    code = (
        f"import os\nos.symlink('{secret}', 'link'); os.symlink('/', 'root'); os.symlink('.', 'loop')\n"
        f"os.link('{secret}', 'hard')\nos.mkfifo('pipe')\nopen('new\\nline', 'w').close()\n"
        "open(b'odd\\xff', 'w').close()\nos.mkdir('..hidden')\nopen('..hidden/x', 'w').write('x')\n"
        "open('fine', 'w').write('fine')"
    )
    result = await run(code)
    assert {file.name: file.content for file in result.output_files} == {"..hidden/x": b"x", "fine": b"fine"}
    why = {
        "name": "its name holds control characters or is not UTF-8",
        "kind": "it is a link, no file, or cannot be read",
    }
    assert result.stderr.splitlines() == [
        "'hard' is left out: it has a second name, or lies too deep",
        f"'link' is left out: {why['kind']}",
        f"'loop' is left out: {why['kind']}",
        f"'new\\nline' is left out: {why['name']}",
        f"'odd\\udcff' is left out: {why['name']}",
        f"'pipe' is left out: {why['kind']}",
        f"'root' is left out: {why['kind']}",
    ]
    assert result.is_success()


@pytest.mark.parametrize(
    ("code", "limits", "kept", "told"),
    [
        (
            "for i in range(5): open(f'{i}', 'w').close()", Limits(output_files=3), 3,
            "the code left more than 3 files in the working directory",
        ),
        (
            "for i in range(5): open(f'{i}', 'wb').write(bytes(60_000))", Limits(disk_bytes=100_000), 1,
            "the files in the working directory have more than 100000 bytes together",
        ),
    ],
)  # fmt: skip
async def test_a_quota_is_told_and_holds(code: str, limits: Limits, kept: int, told: str) -> None:
    result = await run(code, limits=limits)
    assert len(result.output_files) == kept
    assert result.stderr.splitlines()[0] == told


async def test_input_files_that_need_one_place_are_refused() -> None:
    files = (ExecFile(name="a", content=b""), ExecFile(name="a/b", content=b""))
    with pytest.raises(InvalidSetting, match=r"^the input file 'a/b' cannot be staged: "):
        await run("1", "python", *files)


@linux
@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import signal, time\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\nwhile True: time.sleep(9)",
        "import subprocess\nsubprocess.run(['sleep', '60'])",
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    ],
    ids=["spins", "ignores signals", "waits", "stops itself"],
)
async def test_a_program_past_its_time_is_dead(code: str) -> None:
    result = await run("import os\nprint(os.getpid(), flush=True)\n" + code, timeout=0.5)
    assert (result.stderr, result.exit_code, result.timed_out) == (TIMED_OUT, None, True)
    assert CodeExecutionResultPart.of(result).outcome is Outcome.OutcomeDeadlineExceeded
    assert not Path(f"/proc/{int(result.stdout)}").exists()


@linux
async def test_descendants_die_with_it_wherever_they_went() -> None:
    daemon = (
        "import os, time\n"
        "def leave(pid):\n    print(pid, flush=True)\n    time.sleep(60)\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork() == 0: leave(os.getpid())\n"
        "        os._exit(0)\n"
    )
    late = await run(daemon + "time.sleep(60)", timeout=1.0)
    early = await run(daemon + "time.sleep(0.3)")
    assert (late.timed_out, early.timed_out, early.exit_code) == (True, False, 0)
    pids = [int(pid) for pid in (late.stdout + early.stdout).split()]
    assert len(pids) == 6
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


@linux
async def test_a_program_that_kills_its_supervisor_escapes_nothing() -> None:
    code = (
        "import os, signal, time\nprint(os.getpid(), flush=True)\nos.setsid() if os.fork() == 0 else None\n"
        "print(os.getpid(), flush=True)\nos.kill({victim}, signal.{signal})\ntime.sleep(60)"
    )
    killed = await run(code.format(victim="os.getppid()", signal="SIGKILL"), timeout=20)
    stopped = await run(code.format(victim="os.getppid()", signal="SIGSTOP"), timeout=0.5)
    for result in (killed, stopped):
        assert [pid for pid in set(result.stdout.split()) if not await gone(int(pid))] == []
    assert stopped.timed_out
    assert (await run("print('still here')")).stdout == "still here\n"


@linux
async def test_cancelling_kills_the_program_and_removes_its_folder(tmp_path: Path) -> None:
    seen: list[str] = []
    context = InvocationContext(on_output=lambda _, text: seen.append(text))
    executor = LocalCodeExecutor(workspace_root=tmp_path)
    code = "import os, time\nprint(os.getpid(), flush=True)\nopen('x', 'w').close()\ntime.sleep(60)"
    running = asyncio.ensure_future(executor.execute_code(context, CodeExecutionInput(code)))
    await until(lambda: bool(seen))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not Path(f"/proc/{int(seen[0])}").exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "timeout"), [("open('x', 'w').close()", 5), ("import os\nos.makedirs('a/' * 900)\nwhile 1: pass", 0.5)]
)
async def test_nothing_is_left_of_its_folder(tmp_path: Path, code: str, timeout: float) -> None:
    await run(code, timeout=timeout, workspace_root=tmp_path)
    assert list(tmp_path.iterdir()) == []


async def test_output_arrives_as_it_is_printed() -> None:
    arrived: list[tuple[float, str, str]] = []
    context = InvocationContext(on_output=lambda stream, text: arrived.append((time.monotonic(), stream, text)))
    code = "import sys, time\nprint('a', flush=True)\ntime.sleep(0.5)\nprint('b', file=sys.stderr)"
    result = await LocalCodeExecutor().execute_code(context, CodeExecutionInput(code))
    assert [(stream, text) for _, stream, text in arrived] == [("stdout", "a\n"), ("stderr", "b\n")]
    assert arrived[1][0] - arrived[0][0] > 0.3
    assert (result.stdout, result.stderr) == ("a\n", "b\n")


async def test_a_flood_is_cut_in_the_middle_and_says_so() -> None:
    code = "import sys\nfor i in range(100): sys.stdout.write('x' * 1_000_000)\nsys.stdout.write('end')"
    result = await run(code, limits=Limits(output_bytes=1000))
    assert result.exit_code == 0
    assert result.stdout == "x" * 500 + "\n… 99999003 bytes cut …\n" + "x" * 497 + "end"


async def test_output_that_is_not_text_is_made_readable() -> None:
    assert (await run("import os\nos.write(1, b'a\\xff\\xe2\\x82')")).stdout == "a��"


@linux
@pytest.mark.parametrize(
    ("code", "limits", "limit"),
    [
        ("x = bytearray(300_000_000)\nimport time\ntime.sleep(20)", Limits(memory_bytes=100 * MIB), "memory_bytes"),
        (
            "import os, time\nfor _ in range(20):\n    if os.fork() == 0: time.sleep(20)\ntime.sleep(20)",
            Limits(processes=8), "processes",
        ),
    ],
)  # fmt: skip
async def test_a_program_over_a_limit_is_killed_and_told(code: str, limits: Limits, limit: str) -> None:
    result = await run(code, limits=limits)
    assert (result.exit_code, result.timed_out) == (137, False)
    assert result.stderr == f"killed: it took more than Limits.{limit}\n"


@linux
async def test_a_file_past_its_limit_and_too_many_open_files_fail_inside() -> None:
    big = await run("open('x', 'wb').write(bytes(100_000))", limits=Limits(file_bytes=1000))
    many = await run("fs = [open('/dev/null') for _ in range(99)]", limits=Limits(open_files=32))
    assert big.stderr.splitlines()[-1] == "OSError: [Errno 27] File too large"
    assert many.stderr.splitlines()[-1] == "OSError: [Errno 24] Too many open files: '/dev/null'"


async def test_a_signal_is_an_exit_code_as_in_a_shell() -> None:
    assert (await run("import os\nos.kill(os.getpid(), 11)")).exit_code == 139
    assert (await run("import os\nos._exit(7)")).exit_code == 7


async def test_many_run_at_once() -> None:
    results = await asyncio.gather(*(run(f"print({i})") for i in range(12)))
    assert [result.stdout for result in results] == [f"{i}\n" for i in range(12)]


async def test_a_program_that_never_reads_its_code_ends_all_the_same() -> None:
    assert (await run("#" * 2_000_000, interpreter="true", args=())).exit_code == 0


async def test_code_with_lone_surrogates_is_not_the_end() -> None:
    assert (await run("print('\udcff')")).stdout == "?\n"


@linux
async def test_a_spawner_that_dies_is_an_error_of_the_executor_once() -> None:
    from hatchway.sandboxes.process.program import starter
    from hatchway.sandboxes.process.spawners import Spawners

    await run("1")
    spawner = Spawners().get(starter())
    seen: list[str] = []
    context = InvocationContext(on_output=lambda _, text: seen.append(text))
    code = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)"
    running = asyncio.ensure_future(LocalCodeExecutor().execute_code(context, CodeExecutionInput(code)))
    await until(lambda: bool(seen))
    os.kill(spawner.pid, 9)
    with pytest.raises(SandboxCrashed, match=r"^what started and watched the program died\n"):
        await running
    assert await gone(int(seen[0]))
    assert (await run("print('again')")).stdout == "again\n"


@linux
async def test_a_host_that_is_killed_leaves_no_program_and_no_folder(tmp_path: Path) -> None:
    code = "import os, time\nopen('x', 'w').close()\nprint(os.getpid(), flush=True)\ntime.sleep(60)"
    host = (
        "import asyncio\nfrom hatchway.executors import *\n"
        "ctx = InvocationContext(on_output=lambda _, text: print(text, end='', flush=True))\n"
        f"executor = LocalCodeExecutor(workspace_root={str(tmp_path)!r})\n"
        f"asyncio.run(executor.execute_code(ctx, CodeExecutionInput({code!r})))"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", host, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    pid = int(await process.stdout.readline())
    process.kill()
    await process.wait()
    assert await gone(pid)
    await until(lambda: not any(tmp_path.iterdir()))


@linux
async def test_cancelling_while_files_are_staged_leaves_nothing(tmp_path: Path) -> None:
    files = tuple(ExecFile(name=f"{i}/x", content=bytes(100_000)) for i in range(200))
    executor = LocalCodeExecutor(workspace_root=tmp_path)
    given = CodeExecutionInput("1", input_files=files)
    running = asyncio.ensure_future(executor.execute_code(InvocationContext(), given))
    await until(lambda: any(tmp_path.iterdir()))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert list(tmp_path.iterdir()) == []


async def test_each_event_loop_can_use_it() -> None:
    def own_loop() -> str:
        return asyncio.run(run("print('from another loop')")).stdout

    assert await asyncio.to_thread(own_loop) == "from another loop\n"
    assert (await run("print('and here')")).stdout == "and here\n"
