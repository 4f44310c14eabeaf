"""Sessions IPython's way: `!cmd`, `%magics`, `_`, rich display; all else as in plain sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from hatchway.core.errors import CodeRuntimeError, CodeSyntaxError, InvalidSetting, SandboxUnavailable
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeSandbox, CodeSession
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.packages import Packages
from hatchway.sandboxes.process import ProcessSandbox
from hatchway.sandboxes.wall import landlock
from hatchway.testing import CHECKS, Check, run_check

Make = Callable[..., CodeSandbox]
KINDS = ("process", "namespaces", "landlock")


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest) -> Make:
    """A sandbox of each kind."""
    if request.param == "process":
        return ProcessSandbox
    if request.param == "namespaces" and (seen := JailSandbox.probe()).tier != "namespaces":
        pytest.skip(f"{seen.reason} {seen.hint}")
    if request.param == "landlock" and landlock.abi() < 6:
        pytest.skip(f"needs Landlock version 6, this kernel has {landlock.abi()}")
    return lambda **settings: JailSandbox(tier=request.param, spares=1, **settings)


@pytest.fixture
async def session(make: Make, environment_python: str) -> AsyncIterator[CodeSession]:
    async with make(python=environment_python) as sandbox, sandbox.session() as opened:
        yield opened


async def run(where: Any, code: str, *functions: str) -> ExecutionResult:
    result = await (await where.execute(code, functions)).next()
    assert isinstance(result, ExecutionResult)
    return result


async def failed(where: Any, code: str) -> CodeRuntimeError:
    with pytest.raises(CodeRuntimeError) as raised:
        await run(where, code)
    return raised.value


@pytest.mark.anyio
async def test_commands_run_in_a_shell_and_their_output_comes_in_order(session: CodeSession) -> None:
    result = await run(session, "word = 'there'\nprint('one')\n!echo hello {word}; echo oops >&2\nprint('two')")
    assert (result.stdout, result.stderr) == ("one\nhello there\ntwo\n", "oops\n")
    assert (await run(session, "lines = !echo a; echo b\nlines")).output == ["a", "b"]
    assert (await run(session, "!exit 3\n_exit_code")).output == 3
    assert (await run(session, "%%bash\necho from bash")).stdout == "from bash\n"


@pytest.mark.anyio
async def test_magics_help_and_the_last_values(session: CodeSession) -> None:
    assert (await run(session, "6 * 7")).output == 42
    assert (await run(session, "_ + 1")).output == 43
    assert (await run(session, "[_, __, _1, Out[2], In[1]]")).output == [43, 42, 42, 43, "6 * 7"]
    assert (await run(session, "%%capture kept\nprint('inside')")).stdout == ""
    assert (await run(session, "kept.stdout")).output == "inside\n"
    assert (await run(session, "%time 1 + 1")).output == 2
    assert (await run(session, "%%writefile note.txt\nhello")).stdout == "Writing note.txt\n"
    assert (await run(session, "open('note.txt').read()")).output == "hello\n"
    assert "Return the number of items" in (await run(session, "len?")).stdout
    quiet = await run(session, "99;")
    assert (quiet.output, (await run(session, "_")).output != 99) == (None, True)


@pytest.mark.anyio
async def test_errors_have_the_lines_of_the_action_and_no_frames_of_ours(session: CodeSession) -> None:
    await run(session, "def divide(a, b):\n    return a / b")
    error = await failed(session, "x = 1\n!true\n\ndivide(x, 0)")
    assert error.message.splitlines()[:5] == [
        "Traceback (most recent call last):",
        '  File "<action 2>", line 4, in <module>',
        "    divide(x, 0)",
        '  File "<action 1>", line 2, in divide',
        "    return a / b",
    ]
    missing = await failed(session, "%nosuch")
    assert missing.message.splitlines()[1:3] == ['  File "<action 3>", line 1, in <module>', "    %nosuch"]
    assert missing.message.endswith("UsageError: Line magic function `%nosuch` not found.")
    with pytest.raises(CodeSyntaxError, match='File "<action 4>", line 2'):
        await run(session, "y = 1\nx = = 3")
    assert (await run(session, "x")).output == 1


@pytest.mark.anyio
async def test_tools_and_awaits_are_the_same(session: CodeSession) -> None:
    execution = await session.execute("import asyncio\nx = ask(1)\nawait asyncio.sleep(0)\n_ = 5\n[x, _]", ["ask"])
    await execution.next()
    await execution.provide_result("answer")
    result = await execution.next()
    assert isinstance(result, ExecutionResult)
    assert (result.output, result.usage.calls) == (["answer", 5], 1)


@pytest.mark.anyio
async def test_rich_display(session: CodeSession) -> None:
    code = "from IPython.display import HTML, display\ndisplay(HTML('<i/>'), 7)\nHTML('<b/>')"
    result = await run(session, code)
    assert ([d.content for d in result.displays], result.stdout) == ([b"<i/>", b"<b/>"], "7\n")
    code = "%matplotlib inline\nimport matplotlib.pyplot as plt\nfig, _ = plt.subplots(figsize=(1, 1))\nfig"
    assert [d.mime_type for d in (await run(session, code)).images] == ["image/png"]
    assert [d.mime_type for d in (await run(session, "display(fig)\nplt.plot([1])\nplt.show()")).images] == [
        "image/png",
        "image/png",
    ]


@pytest.mark.anyio
async def test_it_is_used_only_where_it_is_there_and_wanted(make: Make, environment_python: str) -> None:
    async with make(python=environment_python, ipython=False) as sandbox, sandbox.session() as plain:
        with pytest.raises(CodeSyntaxError):
            await run(plain, "%time 1")
    async with make(python=environment_python, ipython=True) as sandbox:
        assert (await run(sandbox, "1 + 1")).output == 2
        with pytest.raises(CodeSyntaxError):
            await run(sandbox, "%time 1")  # one action alone is plain Python
        async with sandbox.session() as opened:
            assert (await run(opened, "%time 1")).output == 1


@pytest.mark.anyio
async def test_it_is_asked_for_and_not_there(make: Make, reachable_python: str | None) -> None:
    async with make(python=reachable_python, ipython=True) as sandbox:
        with pytest.raises(InvalidSetting) as refused:
            async with sandbox.session():
                pass
    assert refused.value.message == "ipython=True, but the code has no IPython"
    assert "packages=['ipython']" in refused.value.hint


@pytest.mark.anyio
async def test_one_that_does_not_start_is_told(
    make: Make, reachable_python: str | None, packages: Callable[..., Packages], write_wheel: Callable[..., None]
) -> None:
    write_wheel("IPython", "9.0", "raise ImportError('broken on purpose')\n")
    async with make(python=reachable_python, packages=packages("ipython")) as sandbox:
        with pytest.raises(SandboxUnavailable) as refused:
            async with sandbox.session():
                pass
    assert refused.value.message == ("IPython cannot be started in the sandbox: ImportError: broken on purpose")


@pytest.mark.anyio
async def test_without_it_the_jail_has_no_shell(make: Make, reachable_python: str | None) -> None:
    async with make(python=reachable_python) as sandbox:
        if sandbox.name == "jail":
            error = await failed(sandbox, "import subprocess\nsubprocess.run(['/bin/sh', '-c', ''])")
            assert "No such file" in error.message or "Permission denied" in error.message


SESSIONS = [check for check in CHECKS if check.topic == "sessions"]


@pytest.mark.slow
@pytest.mark.parametrize("check", SESSIONS, ids=lambda check: check.id)
def test_sessions_conform_with_it(make: Make, environment_python: str, check: Check) -> None:
    outcome = asyncio.run(run_check(check, lambda: make(python=environment_python, ipython=True)))
    assert outcome.state == "passed", f"{check.description}\n{outcome.message}"
