"""SandboxCodeExecutor: every sandbox gives the same answers, and its sessions are bounded and closed."""

import asyncio
from collections.abc import AsyncGenerator
from functools import cache

import pytest

from hatchway import Limits, tool
from hatchway.core.errors import InvalidSetting, InvalidTool, SandboxCrashed, SandboxUnavailable
from hatchway.executors import (
    CodeExecutionInput,
    CodeExecutionResult,
    CodeExecutionResultPart,
    ExecFile,
    InvocationContext,
    Outcome,
    SandboxCodeExecutor,
)
from hatchway.sandboxes.monty import MontySandbox
from hatchway.sandboxes.registry import ROWS, availability

pytestmark = pytest.mark.anyio
CTX = InvocationContext()


@cache
def usable(name: str) -> str:
    found = availability(name)
    if found.state != "usable":
        pytest.skip(f"{name}: {found.reason}")
    return name


@pytest.fixture(params=[name for name in ROWS if name in ("monty", "jail", "process")])
async def executor(request: pytest.FixtureRequest) -> AsyncGenerator[SandboxCodeExecutor]:
    async with SandboxCodeExecutor(usable(request.param)) as executor:
        yield executor


@pytest.fixture
async def full() -> AsyncGenerator[SandboxCodeExecutor]:
    """A full CPython with files."""
    async with SandboxCodeExecutor(usable("jail")) as executor:
        yield executor


async def test_what_is_printed_and_the_last_value_come_back(executor: SandboxCodeExecutor) -> None:
    result = await executor.execute_code(CTX, CodeExecutionInput("print('hello')\n20 + 22"))
    assert result == CodeExecutionResult(stdout="hello\n42\n", exit_code=0)


async def test_a_container_serves_as_well(docker_engine: str) -> None:
    from hatchway.sandboxes.container import ContainerSandbox

    async with ContainerSandbox(spares=0) as container, SandboxCodeExecutor(container) as executor:
        files = (ExecFile(name="in.txt", content=b"6"),)
        for code in ("n = int(open('in.txt').read())", "open('out.txt', 'w').write(str(n * 7))\nprint(n)\nNone"):
            given = CodeExecutionInput(code, input_files=files, execution_id="s")
            result = await executor.execute_code(CTX, given)
    assert result == CodeExecutionResult(
        stdout="6\n", output_files=(ExecFile(name="out.txt", content=b"42"),), exit_code=0
    )


async def test_code_that_raises_is_a_result(executor: SandboxCodeExecutor) -> None:
    result = await executor.execute_code(CTX, CodeExecutionInput("print('before')\n1 / 0"))
    assert (result.stdout, result.exit_code, result.timed_out) == ("before\n", 1, False)
    assert result.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"
    broken = await executor.execute_code(CTX, CodeExecutionInput("1 +"))
    assert broken.exit_code == 1
    assert "SyntaxError" in broken.stderr or "syntax" in broken.stderr


async def test_code_past_its_time_is_a_result_that_says_so() -> None:
    async with SandboxCodeExecutor("monty", timeout=0.3) as executor:
        assert executor.timeout == 0.3
        result = await executor.execute_code(CTX, CodeExecutionInput("print('go')\nwhile True: pass"))
    assert (result.stdout, result.exit_code, result.timed_out) == ("go\n", None, True)
    assert result.stderr.startswith("timed out: ")
    assert CodeExecutionResultPart.of(result).outcome is Outcome.OutcomeDeadlineExceeded


async def test_an_execution_id_names_a_session(executor: SandboxCodeExecutor) -> None:
    assert executor.stateful

    async def run(code: str, execution_id: str | None) -> CodeExecutionResult:
        return await executor.execute_code(CTX, CodeExecutionInput(code, execution_id=execution_id))

    await run("x = 1", "a")
    await run("x = 2", "b")
    assert [(await run("x", name)).stdout for name in ("a", "b")] == ["1\n", "2\n"]
    for name in (None, "c"):
        assert (await run("x", name)).stderr.splitlines()[-1] == "NameError: name 'x' is not defined"


async def test_a_session_takes_one_execution_at_a_time(executor: SandboxCodeExecutor) -> None:
    await executor.execute_code(CTX, CodeExecutionInput("xs = []", execution_id="s"))
    each = [CodeExecutionInput(f"xs.append({i})\nlen(xs)", execution_id="s") for i in range(5)]
    results = await asyncio.gather(*(executor.execute_code(CTX, one) for one in each))
    assert sorted(result.stdout for result in results) == [f"{i}\n" for i in range(1, 6)]


async def test_sessions_are_bounded_and_the_oldest_one_goes() -> None:
    async with SandboxCodeExecutor("monty", max_sessions=2) as executor:
        for name in ("a", "b", "a", "c"):
            await executor.execute_code(CTX, CodeExecutionInput(f"{name} = 1", execution_id=name))
        kept = {}
        for name in ("a", "b"):
            kept[name] = (await executor.execute_code(CTX, CodeExecutionInput(name, execution_id=name))).exit_code
    assert kept == {"a": 0, "b": 1}


async def test_no_session_is_taken_from_somebody_who_uses_it() -> None:
    entered, go = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        """Wait."""
        entered.set()
        await go.wait()

    async with SandboxCodeExecutor("monty", tools=[hold], max_sessions=1) as executor:
        holding = asyncio.ensure_future(
            executor.execute_code(CTX, CodeExecutionInput("await hold()\n'done'", execution_id="a"))
        )
        await entered.wait()
        with pytest.raises(SandboxUnavailable) as refused:
            await executor.execute_code(CTX, CodeExecutionInput("1", execution_id="b"))
        go.set()
        assert (await holding).stdout == "'done'\n"
        assert (await executor.execute_code(CTX, CodeExecutionInput("1", execution_id="b"))).stdout == "1\n"
    assert str(refused.value) == "all 1 sessions are in use\nwait for one to end, or raise max_sessions"


async def test_a_session_that_was_killed_is_replaced_and_that_is_told() -> None:
    async with SandboxCodeExecutor(usable("jail"), timeout=0.5) as executor:
        await executor.execute_code(CTX, CodeExecutionInput("x = 1", execution_id="s"))
        late = await executor.execute_code(CTX, CodeExecutionInput("while True: pass", execution_id="s"))
        after = await executor.execute_code(CTX, CodeExecutionInput("x", execution_id="s"))
    assert "the state of this session is lost with it" in late.stderr.splitlines()
    assert after.stderr.splitlines()[-1] == "NameError: name 'x' is not defined"


async def test_whoever_waited_for_a_session_that_was_killed_gets_a_new_one() -> None:
    async with SandboxCodeExecutor(usable("jail"), timeout=0.5, max_sessions=1) as executor:
        codes = ["while True: pass", "print('fresh')", "print('fresh')"]
        given = [CodeExecutionInput(code, execution_id="s") for code in codes]
        late, *others = await asyncio.gather(*(executor.execute_code(CTX, each) for each in given))
    assert late.timed_out
    assert [other.stdout for other in others] == ["fresh\n", "fresh\n"]


async def test_pictures_the_code_displays_are_files(full: SandboxCodeExecutor) -> None:
    code = "class Picture:\n    def _repr_png_(self): return b'\\x89PNG\\r\\n\\x1a\\n'\nPicture()"
    result = await full.execute_code(CTX, CodeExecutionInput(code))
    assert [(file.mime_type, file.content) for file in result.output_files] == [("image/png", b"\x89PNG\r\n\x1a\n")]


async def test_a_session_whose_interpreter_died_is_replaced_and_that_is_told(full: SandboxCodeExecutor) -> None:
    died = await full.execute_code(CTX, CodeExecutionInput("import os\nos._exit(3)", execution_id="s"))
    assert died.exit_code == 1
    assert died.stderr.splitlines()[-1] == "the state of this session is lost with it"
    assert (await full.execute_code(CTX, CodeExecutionInput("1", execution_id="s"))).stdout == "1\n"


async def test_without_files_a_session_whose_interpreter_died_is_an_error_once() -> None:
    async with SandboxCodeExecutor(usable("jail"), files=False) as executor:
        await executor.execute_code(CTX, CodeExecutionInput("import os\nos._exit(3)", execution_id="s"))
        with pytest.raises(SandboxCrashed, match=r"^the session is gone"):
            await executor.execute_code(CTX, CodeExecutionInput("1", execution_id="s"))
        assert (await executor.execute_code(CTX, CodeExecutionInput("1", execution_id="s"))).stdout == "1\n"


@pytest.mark.parametrize("execution_id", [None, "s"])
async def test_files_go_in_and_come_out(full: SandboxCodeExecutor, execution_id: str | None) -> None:
    code = "open('copy.bin', 'wb').write(open('data/in.bin', 'rb').read() * 2)\nlist(globals())"
    files = (ExecFile(name="data/in.bin", content=b"\x00\xff"),)
    given = CodeExecutionInput(code, input_files=files, execution_id=execution_id)
    result = await full.execute_code(CTX, given)
    assert result.stderr == ""
    assert "hatchway" not in result.stdout.replace("__hatchway", "")
    assert "exchange_files" not in result.stdout
    assert result.output_files == (ExecFile(name="copy.bin", content=b"\x00\xff\x00\xff"),)
    if execution_id:
        later = CodeExecutionInput(
            "open('copy.bin', 'ab').write(b'!')\nopen('data/in.bin', 'rb').read()", execution_id="s"
        )
        again = await full.execute_code(CTX, later)
        assert again.stdout == "b'\\x00\\xff'\n"
        assert again.output_files == (ExecFile(name="copy.bin", content=b"\x00\xff\x00\xff!"),)


async def test_files_come_out_of_code_that_raised(full: SandboxCodeExecutor) -> None:
    result = await full.execute_code(CTX, CodeExecutionInput("open('half', 'w').write('1')\n1/0"))
    assert (result.exit_code, result.output_files) == (1, (ExecFile(name="half", content=b"1"),))


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (
            "import os\nos.walk = lambda *_: 1 / 0",
            "the files cannot be collected: ZeroDivisionError: division by zero\n",
        ),
        (
            "import os\nopen('x', 'w').close()\nos.path.normpath = lambda path: '/dev/null'\n"
            "os.lstat = lambda _, old=os.lstat: old('x')",
            "the files cannot be collected: the code changed how they are read\n",
        ),
        ("open('new\\nline', 'w').close()", "left out, by name or size: 'new\\nline'\n"),
    ],
)
async def test_code_that_tampers_with_the_exchange_gets_nothing_past_it(
    full: SandboxCodeExecutor, code: str, told: str
) -> None:
    result = await full.execute_code(CTX, CodeExecutionInput(code))
    assert (result.exit_code, result.output_files, result.stderr) == (0, (), told)


@pytest.mark.parametrize("limits", [Limits(output_files=3), Limits(value_bytes=4_000)])
async def test_many_or_large_files_are_left_out_and_told(limits: Limits) -> None:
    code = "for i in range(4): open(f'{i}', 'w').write('x' * 600)"
    async with SandboxCodeExecutor(usable("jail"), limits=limits) as executor:
        result = await executor.execute_code(CTX, CodeExecutionInput(code))
    assert [len(file.content) for file in result.output_files] == [600, 600, 600]
    missing = ({"0", "1", "2", "3"} - {file.name for file in result.output_files}).pop()
    assert result.stderr == f"left out, by name or size: '{missing}'\n"


async def test_a_crowded_folder_is_not_searched(full: SandboxCodeExecutor) -> None:
    crowd = "import os\nos.mkdir('d')\nfor i in range(6000): open(f'd/{i}', 'w').close()"
    first = await full.execute_code(CTX, CodeExecutionInput(crowd, execution_id="s"))
    assert first.output_files == ()
    assert first.stderr == "the files are not collected: there are more than 5000 in the working directory\n"
    later = await full.execute_code(CTX, CodeExecutionInput("open('x', 'w').close()", execution_id="s"))
    assert later == CodeExecutionResult(exit_code=0)


async def test_without_files_nothing_is_collected() -> None:
    async with SandboxCodeExecutor(usable("jail"), files=False) as executor:
        result = await executor.execute_code(CTX, CodeExecutionInput("open('x', 'w').close()"))
    assert result == CodeExecutionResult(exit_code=0)


async def test_files_that_cannot_be_staged_are_an_error(full: SandboxCodeExecutor) -> None:
    files = (ExecFile(name="a", content=b""), ExecFile(name="a/b", content=b""))
    with pytest.raises(InvalidSetting, match=r"^the input files cannot be staged: FileExistsError"):
        await full.execute_code(CTX, CodeExecutionInput("1", input_files=files))


async def test_a_sandbox_without_files_says_so() -> None:
    async with SandboxCodeExecutor("monty") as executor:
        with pytest.raises(InvalidSetting) as refused:
            await executor.execute_code(CTX, CodeExecutionInput("1", input_files=(ExecFile(name="a", content=b""),)))
    assert str(refused.value) == "the sandbox 'monty' has no place for input files\nuse sandbox='jail'"


async def test_the_code_may_call_tools_and_asking_ones_are_denied_without_a_person() -> None:
    def double(n: int) -> int:
        """Twice as much."""
        return 2 * n

    @tool(approval="ask")
    def wipe() -> None:
        """Remove everything."""
        raise AssertionError("it ran")

    code = "print(double(n=21))\ntry:\n    wipe()\nexcept RuntimeError as e:\n    print(e)"
    async with SandboxCodeExecutor("monty", tools=[double, wipe]) as executor:
        result = await executor.execute_code(CTX, CodeExecutionInput(code))
    assert result.stdout == "42\nToolDenied: nobody is here to approve it\n"


async def test_a_person_may_be_asked() -> None:
    @tool(approval="ask")
    def wipe(what: str) -> str:
        """Remove something."""
        return f"wiped {what}"

    async with SandboxCodeExecutor("monty", tools=[wipe], approve=lambda call: True) as executor:
        result = await executor.execute_code(CTX, CodeExecutionInput("wipe(what='it')"))
    assert result.stdout == "'wiped it'\n"


async def test_output_arrives_as_it_is_printed(executor: SandboxCodeExecutor) -> None:
    arrived: list[tuple[str, str]] = []
    context = InvocationContext(on_output=lambda stream, text: arrived.append((stream, text)))
    await executor.execute_code(context, CodeExecutionInput("print('a')"))
    assert "".join(text for _, text in arrived) == "a\n"


async def test_an_instance_stays_the_callers() -> None:
    async with MontySandbox() as sandbox:
        async with SandboxCodeExecutor(sandbox) as executor:
            assert (await executor.execute_code(CTX, CodeExecutionInput("1"))).stdout == "1\n"
        async with SandboxCodeExecutor(sandbox) as executor:
            assert (await executor.execute_code(CTX, CodeExecutionInput("2"))).stdout == "2\n"


async def test_it_can_be_used_again_after_it_was_closed() -> None:
    executor = SandboxCodeExecutor("monty")
    for _ in range(2):
        assert (await executor.execute_code(CTX, CodeExecutionInput("1", execution_id="s"))).stdout == "1\n"
        await executor.aclose()
    await executor.aclose()


def test_each_event_loop_has_its_own() -> None:
    executor = SandboxCodeExecutor("monty")

    async def run() -> str:
        async with executor:
            return (await executor.execute_code(CTX, CodeExecutionInput("7"))).stdout

    assert [asyncio.run(run()) for _ in range(2)] == ["7\n", "7\n"]


async def test_another_language_is_refused(executor: SandboxCodeExecutor) -> None:
    with pytest.raises(InvalidSetting, match=r"^there is no language 'bash' here\nthere are: python$"):
        await executor.execute_code(CTX, CodeExecutionInput("ls", "bash"))


async def test_mistakes_are_told_when_it_is_made() -> None:
    with pytest.raises(InvalidTool):
        SandboxCodeExecutor("monty", tools=[lambda x: x])
    for settings in ({"timeout": 0}, {"error_retry_attempts": 0}, {"max_sessions": 0}):
        with pytest.raises(InvalidSetting):
            SandboxCodeExecutor("monty", **settings)  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="there is no sandbox 'mony'"):
        async with SandboxCodeExecutor("mony") as executor:
            await executor.execute_code(CTX, CodeExecutionInput("1"))


async def test_limits_hold() -> None:
    async with SandboxCodeExecutor("monty", limits=Limits(output_bytes=100)) as executor:
        result = await executor.execute_code(CTX, CodeExecutionInput("print('x' * 5000)"))
    assert "bytes cut" in result.stdout
    assert len(result.stdout) < 200
