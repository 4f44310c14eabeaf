"""The same files on every sandbox: one table of what goes in and what comes out, run on each of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.calls import Waiting
from hatchway.core.errors import (
    CodeLimitError,
    CodeRuntimeError,
    CodeTimeoutError,
    InvalidSetting,
    SandboxUnavailable,
)
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeSandbox
from hatchway.sandboxes.container import ContainerSandbox
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.monty import MontySandbox
from hatchway.sandboxes.process import ProcessSandbox
from hatchway.sandboxes.registry import make_sandbox
from hatchway.sandboxes.spool import SpooledFile

pytestmark = pytest.mark.anyio
Make = Callable[..., CodeSandbox]
LARGE = 5 << 20


@pytest.fixture(params=["process", "jail", "landlock", "monty", "container"])
def make(request: pytest.FixtureRequest) -> Make:
    match request.param:
        case "process":
            return ProcessSandbox
        case "monty":
            if (seen := MontySandbox.probe()).state != "usable":
                pytest.skip(f"{seen.reason} {seen.hint}")
            return MontySandbox
        case "container":
            request.getfixturevalue("docker_engine")
            return partial(ContainerSandbox, spares=0)
        case name:
            return _jail(request, "namespaces" if name == "jail" else "landlock")


def _jail(request: pytest.FixtureRequest, tier: Any) -> Make:
    python = request.getfixturevalue("reachable_python") if tier == "landlock" else None
    seen = JailSandbox.probe()
    if tier == "namespaces" and seen.tier != tier:
        pytest.skip(f"{seen.reason} {seen.hint}")
    return partial(JailSandbox, tier=tier, python=python, spares=0)


@pytest.fixture
def given(open_path: Path) -> Path:
    """A folder to grant, open to every uid, with a secret beside it."""
    folder = open_path / "given"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text("alpha")
    (folder / "deep" / "b.txt").write_text("beta")
    (folder / "ünïcode ☃.txt").write_text("snow")
    (folder / "empty").touch()
    (folder / "large").write_bytes(bytes(LARGE))
    (open_path / "secret").write_text("SECRET")
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row: code, the value it ends in, and the files that come back."""

    code: str
    output: Any = None
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    limits: Limits = field(default_factory=Limits)
    over: str = ""
    """The limit it goes over."""


CASES = {
    "input file": Case(code="open('/{file}').read()", output="alpha"),
    "input folder": Case(
        code="import os\n[open('input/all/deep/b.txt').read(), len(os.listdir('input/all'))]", output=["beta", 5]
    ),
    "input is not written": Case(
        code="""
told = 0
for path in ('input/x', 'input/all/a.txt'):
    try:
        open(path, 'w').write('changed')
    except OSError:
        told += 1
told
""",
        output=2,
    ),
    "output file": Case(code="open('output/r.csv', 'w').write('1,2')", output=3, files={"r.csv": b"1,2"}),
    "output folders": Case(
        code="import pathlib\npathlib.Path('output/a/b').mkdir(parents=True)\nopen('output/a/b/c', 'w').write('x')",
        output=1,
        files={"a/b/c": b"x"},
    ),
    "too many files": Case(
        code="for n in range(4):\n    open('output/' + str(n), 'w').write('x')",
        limits=Limits(output_files=3),
        over="output_files",
    ),
    "a file too large": Case(
        code="open('output/big', 'wb').write(bytes(200_000))", limits=Limits(file_bytes=100_000), over="file_bytes"
    ),
    "too much together": Case(
        code="for n in range(4):\n    open('output/' + str(n), 'wb').write(bytes(300_000))",
        limits=Limits(disk_bytes=1 << 20),
        over="disk_bytes",
    ),
    "unicode": Case(
        code="open('output/ü ☃.txt', 'w').write(open('input/all/ünïcode ☃.txt').read())",
        output=4,
        files={"ü ☃.txt": b"snow"},
    ),
    "5 MB": Case(
        code="open('output/large', 'wb').write(open('input/all/large', 'rb').read())",
        output=LARGE,
        files={"large": bytes(LARGE)},
    ),
    "empty": Case(
        code="open('output/nothing', 'w').close()\nopen('input/all/empty').read()", output="", files={"nothing": b""}
    ),
    "no file at all": Case(code="1", output=1),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_files(make: Make, given: Path, case: Case) -> None:
    sandbox = make(file_mounts=[(given / "a.txt", "x"), (given, "all")])
    if isinstance(sandbox, MontySandbox):  # it takes no host directory twice, nor a file of one
        sandbox = make(file_mounts=[(given, "all")])
    if isinstance(sandbox, ProcessSandbox) and case is CASES["input is not written"] and os.geteuid() == 0:
        pytest.skip("for root the permissions of its copies say nothing")
    async with sandbox:
        file = "input/x" if not isinstance(sandbox, MontySandbox) else "input/all/a.txt"
        is_own_root = not isinstance(sandbox, ProcessSandbox) and sandbox.tier != "landlock"
        code = case.code.replace("/{file}", f"/{file}" if is_own_root else file)
        execution = await sandbox.execute(code, limits=case.limits)
        if case.over:
            with pytest.raises(CodeLimitError) as told:
                await execution.next()
            assert told.value.limit == case.over
            return
        result = await execution.next()
    assert isinstance(result, ExecutionResult)
    assert (result.output, {file.name: file.content for file in result.files}) == (case.output, case.files)
    assert (given / "a.txt").read_text() == "alpha"


async def test_a_session_gives_each_file_once_also_when_it_is_run_again(
    make: Make, given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "signing.key"))
    async with make(workspace_root=given) as sandbox:
        async with sandbox.session() as session:
            first = await ended(session, "open('output/a', 'w').write('1')")
            second = await ended(session, "open('output/b', 'w').write('22')")
            dumped = await session.dump()
        assert dumped is not None
        async with sandbox.restore_session(dumped) as again:
            assert again is not None
            third = await ended(again, "open('output/c', 'w').write(open('output/a').read())")
    assert [names(result) for result in (first, second, third)] == [["a"], ["b"], ["c"]]


async def test_files_of_an_action_that_is_stored_while_it_waits(
    make: Make, given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "signing.key"))
    async with make(workspace_root=given) as sandbox:
        execution = await sandbox.execute("open('output/a', 'w').write('1')\nask()", ["ask"])
        await execution.next()
        assert isinstance(await execution.next(), Waiting)
        dumped = execution.dump()
        await execution.cancel()
        assert dumped is not None
        again = await sandbox.restore(dumped)
        assert again is not None
        await again.next()
        await again.provide_result("told")
        result = await again.next()
    assert isinstance(result, ExecutionResult)
    assert (result.output, names(result)) == ("told", ["a"])


async def test_files_come_with_errors_too(make: Make, given: Path) -> None:
    async with make(workspace_root=given) as sandbox:
        for end, error in (("1 / 0", CodeRuntimeError), ("while True:\n    pass", CodeTimeoutError)):
            execution = await sandbox.execute(
                f"open('output/x', 'w').write('kept')\n{end}", limits=Limits(wall_seconds=2)
            )
            with pytest.raises(error) as told:
                await execution.next()
            assert [(file.name, file.content) for file in told.value.files] == [("x", b"kept")]


LINKED = """
import os
os.symlink({secret!r}, 'output/link')
os.symlink('..', 'output/up')
os.link('output/one', 'output/two') if open('output/one', 'w').close() is None else 0
os.mkfifo('output/fifo')
open('output/plain', 'w').write('plain')
"""


async def test_links_and_pipes_are_left_alone(make: Make, given: Path) -> None:
    if make is MontySandbox:
        pytest.skip("Monty has no way to make a link or a pipe")
    async with make(workspace_root=given) as sandbox:
        result = await ended(sandbox, LINKED.format(secret=str(given.parent / "secret")))
    assert [(file.name, file.content) for file in result.files] == [("plain", b"plain")]


async def test_a_name_that_leads_out_stays_where_it_leads(make: Make, given: Path) -> None:
    """`..` in a path is the code's own: what is not below `/output` is not collected, and no name climbs."""
    code = """
import os
os.makedirs('output/deep')
open('output/deep/../up', 'w').write('1')
try:
    open('output/../beside', 'w').write('2')
except OSError:
    pass
"""
    async with make(workspace_root=given) as sandbox:
        assert names(await ended(sandbox, code)) == ["up"]
    with pytest.raises(InvalidSetting, match=r"must name a place inside the sandbox, without '\.\.'"):
        make(file_mounts=[(given, "../x")])


async def test_a_large_file_comes_from_disk(make: Make, given: Path) -> None:
    async with make(workspace_root=given) as sandbox:
        (file,) = (await ended(sandbox, f"open('output/large', 'wb').write(bytes({LARGE}))")).files
    assert file.size == LARGE
    assert isinstance(file, SpooledFile) or make_name(make) == "ContainerSandbox"
    with file.open() as stream:
        assert stream.read(3) == bytes(3)


async def test_nothing_is_granted_nothing_comes_back(make: Make) -> None:
    async with make() as sandbox:
        assert (await ended(sandbox, "1")).files == ()


async def test_the_model_is_told_where_files_are(make: Make, given: Path) -> None:
    told = "Given files are in `input/`, read-only. Leave files for the user in `output/`."
    assert told in make(workspace_root=given).constraints.additional_instructions
    assert told not in make().constraints.additional_instructions


async def test_a_mount_that_is_gone_before_the_code_starts(make: Make, given: Path) -> None:
    sandbox = make(file_mounts=[(given / "a.txt", "x")])
    (given / "a.txt").unlink()
    async with sandbox:
        with pytest.raises((InvalidSetting, SandboxUnavailable)) as refused:
            await sandbox.execute("1")
    assert str(given / "a.txt") in refused.value.message
    assert refused.value.hint


async def test_what_cannot_be_read_is_refused_when_it_is_granted(make: Make, given: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root can read everything")
    (given / "a.txt").chmod(0)
    (given / "deep").chmod(0)
    for path, setting in ((given / "a.txt", "file_mounts"), (given / "deep", "workspace_root")):
        granted: Any = path if setting == "workspace_root" else [(path, "x")]
        with pytest.raises(InvalidSetting, match="cannot be read: Permission denied") as refused:
            make(**{setting: granted})
        assert refused.value.hint.startswith("chmod u+r")
    (given / "deep").chmod(0o755)


@pytest.mark.parametrize("name", ["process", "monty", "container"])
def test_path_rules_are_the_jails(name: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        make_sandbox(name, paths=None)
    assert (refused.value.message, refused.value.hint) == (
        f"the sandbox {name!r} does not take paths",
        "sandboxes that do: jail",
    )


async def test_a_pipe_nobody_reads_is_an_error_as_under_plain_python(make: Make) -> None:
    if make is MontySandbox:
        pytest.skip("Monty has no pipes")
    code = """
import os
read, write = os.pipe()
os.close(read)
try:
    os.write(write, b'x')
except BrokenPipeError:
    told = 'broken'
told
"""
    async with make() as sandbox:
        assert (await ended(sandbox, code)).output == "broken"


async def ended(runs: Any, code: str) -> ExecutionResult:
    result = await (await runs.execute(code)).next()
    assert isinstance(result, ExecutionResult)
    return result


def names(result: ExecutionResult) -> list[str]:
    return [file.name for file in result.files]


def make_name(make: Make) -> str:
    return getattr(make, "func", make).__name__
