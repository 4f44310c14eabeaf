"""Files in both tiers of the jail: what is shown, what comes back, what hostile code leaves for the host to find."""

from __future__ import annotations

import os
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.weaker_wall import no_memory_read

from hatchway.core.errors import CodeLimitError, CodeRuntimeError, InvalidSetting
from hatchway.core.grants import FileMount
from hatchway.core.limits import Limits
from hatchway.core.results import ExecFile, ExecutionResult
from hatchway.executors import CodeExecutionInput, InvocationContext, SandboxCodeExecutor
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.spool import SpooledFile

pytestmark = pytest.mark.anyio
MakeJail = Callable[..., JailSandbox]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not tmp_path: that one is closed to others, also to an ordinary user's own jail when root made its parent."""
    with tempfile.TemporaryDirectory(prefix="hatchway-test-") as made:
        Path(made).chmod(0o755)  # the landlock tier of root runs code as a uid of its own
        yield Path(made)


@pytest.fixture
def workspace(folder: Path, tier: str) -> Path:
    (folder / "work" / "sub").mkdir(parents=True)
    (folder / "work" / "a.txt").write_text("A")
    if tier == "namespaces" or os.geteuid() != 0:
        (folder / "work" / "a.txt").chmod(0o600)
    (folder / "work" / "sub" / "b.txt").write_text("B")
    return folder / "work"


async def run(runs: Any, code: str, **settings: Any) -> ExecutionResult:
    execution = await runs.execute(textwrap.dedent(code), **settings)
    result = await execution.next()
    assert isinstance(result, ExecutionResult)
    return result


async def test_there_is_no_file_surface_unless_granted(make_jail: MakeJail) -> None:
    code = "import os\n[os.path.exists(p) for p in ('input', 'output', '/input', '/output')]"
    async with make_jail() as jail:
        result = await run(jail, code)
    here = [result.tier == "landlock" and os.path.exists(p) for p in ("/input", "/output")]  # the host's own
    assert result.output == [False, False, *here]


async def test_a_workspace_is_read_only_input_also_files_only_its_owner_may_read(
    make_jail: MakeJail, workspace: Path
) -> None:
    code = """
        import os
        try:
            open('input/new', 'w')
        except OSError as e:
            refused = e.strerror
        refused, open('input/a.txt').read(), open('input/sub/b.txt').read(), sorted(os.listdir('input'))
    """
    async with make_jail(workspace_root=workspace) as jail:
        result = await run(jail, code)
    refused = "Read-only file system" if result.tier == "namespaces" else "Permission denied"
    assert result.output == (refused, "A", "B", ["a.txt", "sub"])
    assert sorted(os.listdir(workspace)) == ["a.txt", "sub"]


async def test_mounts_in_all_forms(
    make_jail: MakeJail, folder: Path, tier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "x.csv").write_text("x")
    monkeypatch.chdir(folder)
    mounts = ["data/x.csv", (folder / "data", "whole")]
    code = "[open(p).read() for p in ('input/data/x.csv', 'input/whole/x.csv')]"
    async with make_jail(file_mounts=mounts) as jail:
        assert (await run(jail, code)).output == ["x", "x"]
    async with make_jail(file_mounts=[FileMount(folder / "data/x.csv", "/elsewhere/y.csv")]) as jail:
        if tier == "namespaces":
            assert (await run(jail, "open('/elsewhere/y.csv').read()")).output == "x"
            return
        with pytest.raises(InvalidSetting, match="it has no file system of its own"):
            await run(jail, "1")


async def test_mounts_lie_over_the_workspace_without_touching_it(
    make_jail: MakeJail, workspace: Path, folder: Path, tier: str
) -> None:
    (folder / "x.csv").write_text("x")
    code = "open('input/deep/er/x.csv').read(), open('input/a.txt').read(), open('input/sub/b.txt').read()"
    async with make_jail(workspace_root=workspace, file_mounts=[(folder / "x.csv", "deep/er/x.csv")]) as jail:
        assert (await run(jail, code)).output == ("x", "A", "B")
    async with make_jail(workspace_root=workspace, file_mounts=[(folder / "x.csv", "sub/x.csv")]) as jail:
        if tier == "namespaces":
            assert (await run(jail, "open('input/sub/x.csv').read()")).output == "x"
        else:
            with pytest.raises(InvalidSetting, match=r"cannot mount sub/x.csv into a directory of the workspace"):
                await run(jail, "1")
    assert sorted(p.name for p in workspace.rglob("*")) == ["a.txt", "b.txt", "sub"]


async def test_output_comes_back_with_its_mime_type(make_jail: MakeJail, workspace: Path) -> None:
    code = """
        import os
        os.makedirs('output/d')
        open('output/d/t.json', 'w').write('{}')
        open('output/o.txt', 'wb').write(b'out')
    """
    async with make_jail(workspace_root=workspace) as jail:
        files = (await run(jail, code)).files
        assert (await run(jail, "import os\nos.listdir('output')")).output == []
    assert [(f.name, f.content, f.mime_type) for f in files] == [
        ("d/t.json", b"{}", "application/json"),
        ("o.txt", b"out", "text/plain"),
    ]


async def test_what_failed_code_wrote_is_in_the_error(make_jail: MakeJail, workspace: Path) -> None:
    async with make_jail(workspace_root=workspace) as jail:
        execution = await jail.execute("open('output/half', 'w').write('1')\n1/0")
        for _ in range(2):
            with pytest.raises(CodeRuntimeError) as failed:
                await execution.next()
            assert [f.name for f in failed.value.files] == ["half"]


async def test_traps_in_output_are_left_alone(make_jail: MakeJail, workspace: Path, folder: Path) -> None:
    (folder / "secret").write_text("secret")
    code = f"""
        import os, socket
        os.symlink('{folder}/secret', 'output/link')
        os.symlink('/', 'output/root')
        os.symlink('link', 'output/loop')
        open('output/one', 'w').write('1')
        os.link('output/one', 'output/two')
        os.mkfifo('output/pipe')
        os.mkdir('output/closed'); open('output/closed/x', 'w').write('x'); os.chmod('output/closed', 0)
        os.mkdir('output/..hidden')
        open('output/' + 'n' * 200, 'w').write('long')
        open(b'output/\\xff', 'w').write('odd')
        open('output/fine', 'w').write('fine')
    """
    async with make_jail(workspace_root=workspace) as jail:
        if jail.tier == "landlock" and os.geteuid() and (why := no_memory_read()):
            pytest.skip(f"the code cannot close its folders here: {why}")
        files = {f.name: f.content for f in (await run(jail, code)).files}
    files.pop("closed/x", None)  # root may read it
    assert files == {"fine": b"fine", "n" * 200: b"long", "\\udcff": b"odd"}


async def test_a_session_keeps_its_output_and_gives_each_file_once(make_jail: MakeJail, workspace: Path) -> None:
    async with make_jail(workspace_root=workspace) as jail, jail.session() as session:
        first = await run(session, "open('output/1', 'w').write('one')")
        second = await run(session, "open('output/2', 'w').write('two')\nopen('output/1').read()")
        third = await run(session, "open('output/1', 'a').write(' more')")
    assert [f.name for f in first.files] == ["1"]
    assert ([f.name for f in second.files], second.output) == (["2"], "one")
    assert [(f.name, f.content) for f in third.files] == [("1", b"one more")]


@pytest.mark.parametrize(
    ("code", "limits", "limit", "message"),
    [
        (
            "for i in range(5): open(f'output/{i}', 'w').close()",
            Limits(output_files=3),
            "output_files",
            "the code left more than 3 files in /output",
        ),
        (
            "import os\nos.truncate(os.open('output/big', 66), 5000)",
            Limits(file_bytes=4096),
            "file_bytes",
            "OSError: [Errno 27] File too large",
        ),
        (
            "for i in range(5): open(f'output/{i}', 'wb').write(bytes(60_000))",
            Limits(disk_bytes=131072),
            "disk_bytes",
            "OSError: [Errno 28] No space left on device",
        ),
    ],
)
async def test_quotas(
    make_jail: MakeJail, workspace: Path, code: str, limits: Limits, limit: str, message: str
) -> None:
    async with make_jail(workspace_root=workspace) as jail:
        with pytest.raises(CodeLimitError) as over:
            await run(jail, code, limits=limits)
    assert message in over.value.message or over.value.message.startswith("the files in /output have more than")
    assert over.value.limit == limit


async def test_a_disk_full_of_files_is_told_as_such(make_jail: MakeJail, workspace: Path) -> None:
    code = "for i in range(99): open(f'output/{i}', 'w').close()\nimport time\ntime.sleep(20)"
    async with make_jail(workspace_root=workspace) as jail:
        with pytest.raises(CodeLimitError) as over:
            await run(jail, code, limits=Limits(disk_files=50, output_files=1000))
    assert over.value.limit == "disk_files"
    assert over.value.hint == "raise Limits.disk_files, or let the code take less"


async def test_no_folder_is_left_when_files_cannot_be_shown(
    make_jail: MakeJail, folder: Path, workspace: Path, tier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "temporary"))
    async with make_jail(workspace_root=workspace, file_mounts=[(workspace / "a.txt", "sub/x.csv")]) as jail:
        with pytest.raises(InvalidSetting, match="cannot mount") if tier == "landlock" else nullcontext():
            await run(jail, "1")
    assert list((folder / "temporary").iterdir()) == []


async def test_a_large_workspace_is_not_walked(make_jail: MakeJail, folder: Path) -> None:
    work = folder / "many"
    work.mkdir()
    for n in range(2000):
        (work / f"{n}.txt").touch()
    before = os.stat(work / "0.txt").st_atime_ns
    async with make_jail(workspace_root=work) as jail:
        assert (await run(jail, "import os\nlen(os.listdir('input'))")).output == 2000
    assert os.stat(work / "0.txt").st_atime_ns == before


async def test_a_mount_that_is_replaced_while_the_jail_lives(make_jail: MakeJail, workspace: Path, tier: str) -> None:
    async with make_jail(workspace_root=workspace) as jail:
        assert (await run(jail, "open('input/a.txt').read()")).output == "A"
        workspace.rename(workspace.with_name("moved"))
        workspace.mkdir()
        (workspace / "a.txt").write_text("another one that was never granted")
        if tier == "namespaces":
            assert (await run(jail, "open('input/a.txt').read()")).output == "A"
            return
        with pytest.raises(CodeRuntimeError, match="Permission denied"):  # the grant was of the directory that moved
            await run(jail, "open('input/a.txt').read()")


async def test_a_large_file_is_never_in_memory_whole(make_jail: MakeJail, workspace: Path) -> None:
    code = """
        with open('output/large.bin', 'wb') as f:
            for n in range(24): f.write(bytes([n]) * (1 << 20))
        open('output/small.bin', 'wb').write(b'x')
    """
    async with make_jail(workspace_root=workspace) as jail:
        large, small = (await run(jail, code)).files
    assert isinstance(large, SpooledFile)
    assert (large.name, large.size, large.mime_type) == ("large.bin", 24 << 20, "application/octet-stream")
    assert (type(small), small.size, small.open().read()) == (ExecFile, 1, b"x")
    with large.open() as stream, large.open() as other:
        assert stream.read(3) == b"\0\0\0"
        other.seek(23 << 20)
        assert (other.read(2), stream.read(1)) == (b"\x17\x17", b"\0")
    assert len(large.content) == 24 << 20
    assert "SpooledFile(name='large.bin', size=25165824" in repr(large)


async def test_a_living_session_cannot_lead_the_host_astray(make_jail: MakeJail, workspace: Path, folder: Path) -> None:
    """Its other processes swap files for links, pipes and directories all the while the host collects."""
    (folder / "secret").write_text("SECRET")
    code = f"""
        import os
        if os.fork() == 0:
            while True:
                for make in (
                    lambda p: os.symlink('{folder}/secret', p), os.mkfifo, os.mkdir,
                    lambda p: open(p, 'w').write('fine'), lambda p: os.symlink('/proc/self/environ', p),
                ):
                    try: make('output/new')
                    except OSError: pass
                    try: os.rename('output/new', 'output/here')
                    except OSError:
                        try: os.rmdir('output/here')
                        except OSError: pass
    """
    async with make_jail(workspace_root=workspace) as jail, jail.session() as session:
        await run(session, code)
        for _ in range(40):
            for file in (await run(session, "1")).files:
                assert file.content in (b"fine", b""), file


async def test_a_mount_that_vanished_before_the_start(make_jail: MakeJail, folder: Path) -> None:
    (folder / "x").write_text("x")
    jail = make_jail(file_mounts=[(folder / "x", "x")])
    (folder / "x").unlink()
    with pytest.raises(InvalidSetting) as refused:
        await jail.execute("1")
    assert refused.value.message == f"cannot show {folder / 'x'}: No such file or directory"
    await jail.aclose()


def test_bad_settings(make_jail: MakeJail, folder: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"workspace_root .*nowhere' does not exist on the host"):
        make_jail(workspace_root=folder / "nowhere")
    with pytest.raises(InvalidSetting, match="nothing can be mounted at /proc/x: the jail has its own there"):
        make_jail(file_mounts=[(folder, "/proc/x")])
    with pytest.raises(InvalidSetting, match=r"without '..'"):
        make_jail(file_mounts=[(folder, "../x")])
    with pytest.raises(InvalidSetting, match="two mounts share the path /input/x"):
        make_jail(file_mounts=[(folder, "x"), (folder, "/input/x")])


async def test_an_executor_gives_what_is_left_in_output_once(make_jail: MakeJail, open_path: Path) -> None:
    code = "open('output/x', 'w').write('1')\nopen('beside', 'w').write('2')\nNone"
    async with make_jail(workspace_root=open_path) as jail, SandboxCodeExecutor(jail) as executor:
        result = await executor.execute_code(InvocationContext(), CodeExecutionInput(code))
    assert [(file.name, file.content) for file in result.output_files] == [("x", b"1"), ("beside", b"2")]


async def test_a_mount_of_all_of_input_is_a_workspace(make_jail: MakeJail, open_path: Path) -> None:
    (open_path / "note").write_text("seen")
    async with make_jail(file_mounts=[FileMount(open_path, "/input")]) as jail:
        assert (await run(jail, "open('input/note').read()")).output == "seen"
