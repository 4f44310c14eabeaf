"""ProcessSandbox: what code gets in it, how its failures are told, and what is left of it: nothing."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import cast

import pytest

from hatchway.core.calls import FunctionSignature
from hatchway.core.errors import (
    CodeLimitError,
    CodeRuntimeError,
    CodeSyntaxError,
    CodeTimeoutError,
    InvalidSetting,
    SandboxCrashed,
    SandboxUnavailable,
    ValueNotPortable,
)
from hatchway.core.limits import MIB, Limits
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeExecution
from hatchway.sandboxes.process import ProcessSandbox
from hatchway.sandboxes.process.python import this_python
from hatchway.sandboxes.process.spawners import Spawners
from hatchway.testing.conformance.descendants import marked
from hatchway.testing.conformance.drive import failure, next_call, run, started

pytestmark = pytest.mark.anyio
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
async def sandbox() -> AsyncGenerator[ProcessSandbox]:
    async with ProcessSandbox() as sandbox:
        yield sandbox


def test_the_probe_says_it_is_unsealed() -> None:
    found = ProcessSandbox.probe()
    assert (found.state, found.tier) == ("usable", "process")
    assert found.reason == "unsealed: the code can do whatever this user can do"


async def test_code_is_text_in_sessions_too() -> None:
    given = cast("str", b"1")
    async with ProcessSandbox() as sandbox, sandbox.session() as session:
        for where in (sandbox, session):
            with pytest.raises(TypeError, match="code must be a str, not bytes"):
                await where.execute(given)


async def test_a_traceback_shows_the_codes_own_lines_and_none_of_ours(sandbox: ProcessSandbox) -> None:
    code = "def halve(n):\n    return n / zero()\n\nhalve(1)"
    error = await failure(sandbox, CodeRuntimeError, code, {"zero": lambda: 0})
    lines = [line for line in str(error).splitlines() if set(line) - set(" ^~")]
    assert lines == [
        "Traceback (most recent call last):",
        '  File "<action>", line 4, in <module>',
        "    halve(1)",
        '  File "<action>", line 2, in halve',
        "    return n / zero()",
        "ZeroDivisionError: division by zero",
    ]


@pytest.mark.parametrize("end", ["\f", "\u2028", "\x1c", "\r"])
async def test_a_traceback_shows_the_right_line_whatever_else_may_end_one(sandbox: ProcessSandbox, end: str) -> None:
    above = f"# {end}# above" if end != "\r" else "# above\r"
    error = await failure(sandbox, CodeRuntimeError, f"{above}\nx = 0\n1 / x")
    assert str(error).splitlines()[2] == "    1 / x"


async def test_a_tools_error_is_told_at_the_call(sandbox: ProcessSandbox) -> None:
    def broken() -> None:
        raise LookupError("no such city")

    error = await failure(sandbox, CodeRuntimeError, "x = 1\nbroken()", {"broken": broken})
    assert str(error).splitlines()[1] == '  File "<action>", line 2, in <module>'
    assert str(error).splitlines()[-1] == "LookupError: no such city"


async def test_in_a_session_each_action_has_its_own_name_and_lines(sandbox: ProcessSandbox) -> None:
    async with sandbox.session() as session:
        await run(session, "def fail():\n    raise ValueError('no')")
        error = await failure(session, CodeRuntimeError, "\n\nfail()")
    assert 'File "<action 2>", line 3, in <module>' in str(error)
    assert 'File "<action 1>", line 2, in fail\n    raise ValueError' in str(error)


async def test_a_syntax_error_shows_its_place(sandbox: ProcessSandbox) -> None:
    error = await failure(sandbox, CodeSyntaxError, "x = 1\ny = (2 +\n")
    assert str(error).splitlines() == [
        '  File "<action>", line 2',
        "    y = (2 +",
        "        ^",
        "SyntaxError: '(' was never closed",
    ]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = '\0'", "null bytes"),
        ("x = '\ud800'", "SyntaxError: the code is not valid text: "),
        ("(" * 5000 + ")" * 5000, "SyntaxError"),
        ("-" * 50_000 + "1", "SyntaxError: the code is nested too deeply"),
    ],
)
async def test_code_that_is_no_program(sandbox: ProcessSandbox, code: str, message: str) -> None:
    assert message in str(await failure(sandbox, CodeSyntaxError, code))
    assert (await run(sandbox, "1 + 1")).output == 2


async def test_empty_code_and_five_megabytes_of_it(sandbox: ProcessSandbox) -> None:
    for code in ("", "\n\n", "# nothing"):
        assert (await run(sandbox, code)).output is None
    assert (await run(sandbox, f"x = '{'a' * 5 * MIB}'\nlen(x)")).output == 5 * MIB


@pytest.mark.parametrize("code", ["import sys\nsys.exit()", "import sys\nsys.exit(0)", "raise SystemExit"])
async def test_a_clean_exit_is_an_end_without_output(sandbox: ProcessSandbox, code: str) -> None:
    result = await run(sandbox, f"print('so far')\n{code}\n'not reached'")
    assert (result.output, result.stdout) == (None, "so far\n")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys\nsys.exit(3)", "SystemExit: 3"),
        ("import sys\nsys.exit('no data')", "SystemExit: no data"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ],
)
async def test_other_ways_to_leave_are_errors(sandbox: ProcessSandbox, code: str, message: str) -> None:
    assert str(await failure(sandbox, CodeRuntimeError, code)).splitlines()[-1] == message


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("os._exit(3)", "the interpreter died: exit code 3"),
        ("os._exit(0)", "the interpreter died: exit code 0"),
        ("os.kill(os.getpid(), 9)", "the interpreter died: killed by signal SIGKILL"),
        ("os.killpg(0, 15)", "the interpreter died: killed by signal SIGTERM"),
        ("import ctypes\nctypes.string_at(0)", "the interpreter died: killed by signal SIGSEGV"),
        ("import resource\nresource.setrlimit(resource.RLIMIT_CPU, (0, 0))\nwhile True: pass", "killed by signal SIG"),
    ],
)
async def test_the_interpreters_death_is_told(sandbox: ProcessSandbox, code: str, message: str) -> None:
    error = await failure(sandbox, CodeRuntimeError, f"import os\nprint('before', flush=True)\n{code}")
    assert message in str(error)
    assert error.stdout == "before\n"


async def test_an_output_that_cannot_cross_is_named_by_its_path(sandbox: ProcessSandbox) -> None:
    error = await failure(sandbox, CodeRuntimeError, "{'rows': [1, {'file': open('/dev/null')}]}")
    assert str(error).startswith("output['rows'][1]['file'] is _io.TextIOWrapper, which cannot cross the wall")


async def test_an_argument_that_cannot_cross_is_a_type_error_at_the_call(sandbox: ProcessSandbox) -> None:
    code = "try:\n    send(1, rows=[{1, object()}])\nexcept TypeError as e:\n    told = str(e)\ntold"
    told = (await run(sandbox, code, {"send": print})).output
    assert told.startswith("send(): kwargs['rows'][0]")
    assert "is object, which cannot cross the wall" in told


async def test_an_exception_that_fights_being_told(sandbox: ProcessSandbox) -> None:
    code = """
        class Nasty(Exception):
            def __str__(self):
                raise SystemExit(0)
            __repr__ = __str__
        raise Nasty
    """
    assert "Nasty" in str(await failure(sandbox, CodeRuntimeError, code))
    huge = await failure(sandbox, CodeRuntimeError, "raise ValueError('x' * 10_000_000)")
    assert len(str(huge)) < 70_000
    assert "characters cut" in str(huge)


async def test_a_flood_of_output_is_cut_and_does_not_stall_the_loop(sandbox: ProcessSandbox) -> None:
    gaps: list[float] = []

    async def watch() -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(0.001)
            gaps.append(time.monotonic() - last)
            last = time.monotonic()

    watching = asyncio.create_task(watch())
    code = "line = 'x' * 999_999\nfor _ in range(10**6):\n    print(line)"
    error = await failure(sandbox, CodeTimeoutError, code, limits=Limits(wall_seconds=1.5))
    watching.cancel()
    assert len(error.stdout) < 1.1 * MIB
    assert "bytes cut" in error.stdout
    assert max(gaps) < 1.0


async def test_a_tool_object_tells_what_it_is(sandbox: ProcessSandbox) -> None:
    stub = 'def add(a: int, b: "list[int]" = [1], *, scale: float = 1.0) -> int:\n    """Add things."""\n'
    add = FunctionSignature(name="add", stub=stub)
    code = """
        import inspect
        told = [repr(add), add.__name__, add.__doc__, str(inspect.signature(add))]
        told + [inspect.iscoroutinefunction(add), repr(bare)]
    """
    async with started(sandbox, code, [add, "bare"]) as execution:
        result = await execution.next()
    assert isinstance(result, ExecutionResult)
    assert result.output == [
        "<tool add(a: int, b: 'list[int]' = [1], *, scale: float = 1.0) -> int>",
        "add",
        "Add things.",
        "(a: 'int', b: \"'list[int]'\" = [1], *, scale: 'float' = 1.0) -> 'int'",
        False,
        "<tool bare(*args, **kwargs)>",
    ]


async def test_dotted_names_make_namespaces(sandbox: ProcessSandbox) -> None:
    tools = {"files.read": lambda p: f"read {p}", "files.deep.list": lambda: ["a"], "top": lambda: 1}
    assert (await run(sandbox, "[files.read('x'), files.deep.list(), top()]", tools)).output == ["read x", ["a"], 1]


async def test_the_code_gets_the_granted_environment_and_a_private_folder() -> None:
    code = "import os\n[dict(os.environ), os.getcwd(), os.listdir('.'), open('new.txt', 'w').write('x')]"
    async with ProcessSandbox(env={"GRANTED": "yes"}) as sandbox:
        environment, folder, listed, _ = (await run(sandbox, code)).output
        other = (await run(sandbox, code)).output[1]
    assert environment == {"GRANTED": "yes"}
    assert listed == []
    assert folder != other
    assert not Path(folder).exists()
    assert not Path(other).exists()


async def test_a_module_the_code_writes_can_be_imported(sandbox: ProcessSandbox) -> None:
    assert (await run(sandbox, "open('mine.py', 'w').write('x = 5')\nimport mine\nmine.x")).output == 5


async def test_mounts_are_read_only_copies_below_input(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("aaa")
    (tmp_path / "b.txt").write_text("bbb")
    mounts = [(tmp_path / "data", "data"), (tmp_path / "b.txt", "deep/b.txt")]
    code = """
        import os, stat
        names = ["input/data/a.txt", "input/deep/b.txt"]
        [[open(n).read() for n in names], [stat.S_IMODE(os.stat(n).st_mode) & 0o222 for n in names]]
    """
    async with ProcessSandbox(file_mounts=mounts) as sandbox:
        assert (await run(sandbox, code)).output == [["aaa", "bbb"], [0, 0]]
        (tmp_path / "b.txt").write_text("later")
        assert (await run(sandbox, "open('input/deep/b.txt').read()")).output == "later"
        async with sandbox.session() as session:
            assert (await run(session, "open('input/deep/b.txt').read()")).output == "later"
    assert (tmp_path / "b.txt").read_text() == "later"


def test_a_mount_outside_input_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidSetting, match=r"the process sandbox cannot show .* at /etc/x: it has no file system of its own"
    ):
        ProcessSandbox(file_mounts=[(tmp_path, "/etc/x")])


@pytest.mark.parametrize(
    ("python", "why"), [("/nowhere/python3", "No such file or directory"), ("/bin/false", "it ended with exit code 1")]
)
async def test_an_interpreter_that_is_none(python: str, why: str, tmp_path: Path) -> None:
    async with ProcessSandbox(python=python, scratch_root=tmp_path) as sandbox:
        with pytest.raises(SandboxUnavailable) as raised:
            await sandbox.execute("1")
    assert raised.value.message == f"{python} cannot run guests: {why}"
    assert raised.value.hint == "give a Python of at least 3.9: ProcessSandbox(python='/usr/bin/python3')"
    assert list(tmp_path.iterdir()) == []


async def test_no_folder_can_be_made() -> None:
    async with ProcessSandbox(scratch_root="/nowhere") as sandbox:
        with pytest.raises(SandboxUnavailable, match="no folder for the code can be made"):
            await sandbox.execute("1")


async def test_another_interpreter_has_its_site_packages() -> None:
    code = "import sys, hatchway\n[sys.executable, sys.flags.no_user_site]"
    async with ProcessSandbox(python=sys.executable) as sandbox:
        assert (await run(sandbox, code)).output == [sys.executable, 1]
    async with ProcessSandbox() as plain:
        assert "No module named 'hatchway'" in str(await failure(plain, CodeRuntimeError, code))


async def test_an_input_that_cannot_cross_starts_nothing(sandbox: ProcessSandbox) -> None:
    with pytest.raises(ValueNotPortable, match=r"inputs\['f'\] is builtin_function_or_method"):
        await sandbox.execute("f", inputs={"f": print})
    assert (await run(sandbox, "1")).output == 1


async def test_memory_of_one_process(sandbox: ProcessSandbox) -> None:
    limits = Limits(memory_bytes=64 * MIB)
    error = await failure(sandbox, CodeLimitError, "print('x')\nb'x' * 400_000_000", limits=limits)
    assert (error.limit, error.stdout) == ("memory_bytes", "x\n")
    assert "MemoryError" in error.message
    code = "try:\n    b'x' * 400_000_000\nexcept MemoryError:\n    told = 'caught'\ntold"
    assert (await run(sandbox, code, limits=limits)).output == "caught"


def test_an_on_output_that_raises_is_told_to_the_loop_and_harms_nothing_else() -> None:
    told: list[str] = []

    async def main() -> ExecutionResult:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(f"{context['message']}: {context['exception']}"))

        def broken(stream: str, text: str) -> None:
            raise ValueError(text)

        async with ProcessSandbox() as sandbox:
            return await run(sandbox, "print(1)\nping()\nprint(2)\n3", {"ping": lambda: None}, on_output=broken)

    result = asyncio.run(main())
    assert (result.output, result.stdout) == (3, "1\n2\n")
    assert told == ["on_output failed: 1\n"]


def test_successive_event_loops_share_a_sandbox() -> None:
    sandbox = ProcessSandbox()

    async def one(n: int) -> int:
        return (await run(sandbox, f"twice({n})", {"twice": lambda n: 2 * n})).output

    assert [asyncio.run(one(n)) for n in range(4)] == [0, 2, 4, 6]
    asyncio.run(sandbox.aclose())


def test_a_loop_may_end_while_code_runs() -> None:
    sandbox = ProcessSandbox()

    async def leave_it() -> None:
        await sandbox.execute("while True: pass")

    asyncio.run(leave_it())

    async def go_on() -> int:
        async with sandbox:
            return (await run(sandbox, "5")).output

    assert asyncio.run(go_on()) == 5


async def test_the_spawners_death_ends_what_runs_and_not_what_comes(tmp_path: Path) -> None:
    async with ProcessSandbox(scratch_root=tmp_path) as sandbox:
        await _killed_spawner(sandbox)
    _until(lambda: not any(tmp_path.iterdir()))


async def _killed_spawner(sandbox: ProcessSandbox) -> None:
    async with started(sandbox, "ping()", ["ping"]) as execution:
        await next_call(execution)
        os.kill(Spawners().get(this_python()).pid, signal.SIGKILL)
        with pytest.raises(SandboxCrashed, match="the process that supervises the code died"):
            await _end_of(execution)
    assert (await run(sandbox, "1 + 1")).output == 2


async def _end_of(execution: CodeExecution) -> None:
    while True:
        await asyncio.sleep(0.01)
        await execution.next()


@linux
def test_a_host_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    mark = f"hw{os.getpid()}k"
    code = f"""
import ctypes, os, time
ctypes.CDLL(None).prctl(15, b"{mark}", 0, 0, 0)
if os.fork() == 0:
    os.setsid()
    while True: time.sleep(0.01)
print("up", flush=True)
while True: time.sleep(0.01)
"""
    host = f"""
import asyncio
from hatchway.sandboxes.process import ProcessSandbox
async def main():
    sandbox = ProcessSandbox(scratch_root={str(tmp_path)!r})
    execution = await sandbox.execute({code!r}, on_output=lambda *_: print("up", flush=True))
    await execution.next()
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", host], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert len(marked(mark)) == 2
        process.kill()
    _until(lambda: not marked(mark))
    _until(lambda: not any(tmp_path.iterdir()))


def test_a_sandbox_nobody_closes_is_no_warning() -> None:
    script = """
import asyncio, gc
from hatchway.sandboxes.process import ProcessSandbox
async def main():
    asyncio.get_running_loop().slow_callback_duration = 60  # a busy machine is no warning either
    sandbox = ProcessSandbox()
    execution = await sandbox.execute("1 + 1")
    print((await execution.next()).output)
    await sandbox.execute("while True: pass")
asyncio.run(main())
gc.collect()
"""
    done = subprocess.run([sys.executable, "-X", "dev", "-W", "error", "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")


def _until(is_true: Callable[[], bool], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@linux
async def test_folders_nested_past_any_recursion_are_removed_and_the_next_action_runs(sandbox: ProcessSandbox) -> None:
    code = "import os\nfor _ in range(3000):\n    os.mkdir('d')\n    os.chdir('d')\nos.chmod('..', 0)\n1"
    assert (await run(sandbox, code)).output == 1
    assert (await run(sandbox, "2")).output == 2
