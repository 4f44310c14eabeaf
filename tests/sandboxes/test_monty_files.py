"""Files in Monty: what is granted can be read and not changed, nothing else can be reached."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from hatchway.core.errors import CodeLimitError, CodeRuntimeError, InvalidSetting
from hatchway.core.limits import Limits
from hatchway.sandboxes.monty import MontySandbox
from hatchway.testing.conformance.drive import failure, next_call, next_result, next_waiting, run, started

pytestmark = pytest.mark.anyio


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A directory to grant, a file to grant, and secrets beside them."""
    data = tmp_path / "data"
    (data / "deep").mkdir(parents=True)
    (data / "rows.csv").write_text("id,name\n1,añ\n")
    (data / "deep" / "raw.bin").write_bytes(b"\x00\xff")
    (tmp_path / "notes.txt").write_text("noted")
    (tmp_path / "secret.txt").write_text("secret")
    (data / "relative").symlink_to("../secret.txt")
    (data / "absolute").symlink_to(tmp_path / "secret.txt")
    (data / "up").symlink_to("..")
    return tmp_path


@pytest.fixture
def sandbox(host: Path) -> Iterator[MontySandbox]:
    sandbox = MontySandbox(file_mounts=[(host / "data", "/data"), (host / "notes.txt", "notes.txt")])
    yield sandbox
    asyncio.run(sandbox.aclose())


async def error(sandbox: MontySandbox, code: str) -> str:
    return str(await failure(sandbox, CodeRuntimeError, code)).rpartition("\n")[2]


async def test_granted_files_can_be_read(sandbox: MontySandbox) -> None:
    code = """
        import os
        from pathlib import Path
        with open("/data/rows.csv") as f:
            text = f.read()
        [text, Path("/data/deep/raw.bin").read_bytes(), sorted(os.listdir("/data/deep")),
         open("input/notes.txt").read(), Path("/input/notes.txt").read_text(), os.getcwd(),
         Path("/data/none").exists(), os.path.isdir("/data")]
    """
    assert (await run(sandbox, code)).output == [
        "id,name\n1,añ\n", b"\x00\xff", ["raw.bin"], "noted", "noted", "/", False, True,
    ]  # fmt: skip


async def test_folders_above_a_grant_show_it(host: Path) -> None:
    code = """
        import os
        from pathlib import Path
        [sorted(os.listdir("input")), sorted(str(p) for p in Path("/input").iterdir()), sorted(os.walk("input")),
         sorted(str(p) for p in Path("input").rglob("*.csv")), Path("input").is_dir(), sorted(os.listdir("/input/all"))]
    """
    walked = [
        ("input", ["all"], ["notes.txt"]),
        ("input/all", ["deep"], ["rows.csv"]),
        ("input/all/deep", [], ["raw.bin"]),
    ]
    grants = [(host / "data", "all"), (host / "notes.txt", "notes.txt")]
    async with MontySandbox(file_mounts=grants) as sandbox:
        assert (await run(sandbox, code)).output == [
            ["all", "notes.txt"], ["/input/all", "/input/notes.txt"], walked, ["input/all/rows.csv"], True,
            ["deep", "rows.csv"],
        ]  # fmt: skip
        for path in ("input/all/up", "input/all/relative", "input/all/up/data", "/input/all/../../data"):
            assert (await run(sandbox, f"import os\n[os.path.exists({path!r}), *os.walk({path!r})]")).output == [False]
    async with MontySandbox(file_mounts=grants[:1]) as sandbox:
        assert (await run(sandbox, "import os\nos.listdir('input')")).output == ["all"]


async def test_nothing_can_be_written(sandbox: MontySandbox, host: Path) -> None:
    before = sorted(str(p) for p in host.rglob("*"))
    for code in (
        "open('/data/rows.csv', 'w')",
        "open('/data/new', 'w').write('x')",
        "open('/data/rows.csv', 'a').write('x')",
        "import pathlib\npathlib.Path('/data/rows.csv').unlink()",
        "import pathlib\npathlib.Path('/data/new').mkdir()",
        "import os\nos.rename('/data/rows.csv', '/data/other.csv')",
        "open('input/notes.txt', 'w')",
        "open('/input/new.txt', 'w')",
        "import pathlib\npathlib.Path('/input/notes.txt').write_text('x')",
        "import pathlib\npathlib.Path('/input/notes.txt').unlink()",
        "import pathlib\npathlib.Path('/input/new').mkdir()",
        "import os\nos.rename('/input/notes.txt', '/input/other.txt')",
    ):
        assert "PermissionError" in await error(sandbox, code), code
    assert sorted(str(p) for p in host.rglob("*")) == before
    assert (host / "data" / "rows.csv").read_text() == "id,name\n1,añ\n"
    assert (host / "notes.txt").read_text() == "noted"


async def test_nothing_beside_a_grant_can_be_reached(sandbox: MontySandbox, host: Path) -> None:
    for path in (
        "/data/../secret.txt", "/data/relative", "/data/absolute", "/data/up/secret.txt", "../secret.txt",
        "/etc/passwd", "/proc/self/environ", str(host / "secret.txt"), "/data/deep/../../secret.txt",
    ):  # fmt: skip
        for code in (f"open({path!r}).read()", f"import pathlib\npathlib.Path({path!r}).read_bytes()"):
            told = await error(sandbox, code)
            assert told.startswith(("PermissionError", "FileNotFoundError")), (code, told)
            assert "secret\n" not in told


async def test_without_grants_there_are_no_files() -> None:
    async with MontySandbox() as sandbox:
        told = "PermissionError: no files are granted to this code: '/etc/passwd'"
        assert await error(sandbox, "open('/etc/passwd')") == told
        assert await error(sandbox, "import pathlib\npathlib.Path('/etc/passwd').read_text()") == told
        for code in ("open('x', 'w')", "import os\nos.listdir('/')", "import os\nos.stat('/')"):
            assert "no files are granted to this code" in await error(sandbox, code)


async def test_a_workspace_is_seen_as_input(host: Path) -> None:
    async with MontySandbox(workspace_root=host / "data") as sandbox:
        assert (await run(sandbox, "open('input/rows.csv').readline()")).output == "id,name\n"
        assert (await run(sandbox, "open('/input/deep/raw.bin', 'rb').read()")).output == b"\x00\xff"


async def test_a_file_is_read_as_it_is_now(sandbox: MontySandbox, host: Path) -> None:
    assert (await run(sandbox, "open('input/notes.txt').read()")).output == "noted"
    (host / "notes.txt").write_text("changed")
    assert (await run(sandbox, "open('input/notes.txt').read()")).output == "changed"
    (host / "notes.txt").unlink()
    told = await error(sandbox, "open('input/notes.txt').read()")
    assert told == "OSError: [Errno 2] cannot be read: '/input/notes.txt'"
    assert str(host) not in told


async def test_files_are_there_in_sessions_and_after_a_restore(
    sandbox: MontySandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "signing.key"))
    async with sandbox.session() as session:
        await run(session, "def read():\n    return open('input/notes.txt').read()")
        assert (await run(session, "read()")).output == "noted"
    async with started(
        sandbox, "ask()\nopen('input/notes.txt').read() + open('/data/rows.csv').read(2)", ["ask"]
    ) as waiting:
        await next_call(waiting)
        await next_waiting(waiting)
        checkpoint = waiting.dump()
    assert checkpoint is not None
    again = await sandbox.restore(checkpoint)
    assert again is not None
    await next_call(again)
    await again.provide_result(None)
    assert (await next_result(again)).output == "notedid"


def test_grants_that_overlap_or_are_not_there(host: Path) -> None:
    overlapping = [(host / "data", "/a"), (host / "data" / "deep", "/b")]
    with pytest.raises(InvalidSetting, match="overlap: mount the outer one only"):
        MontySandbox(file_mounts=overlapping)
    with pytest.raises(InvalidSetting, match="does not exist on the host"):
        MontySandbox(file_mounts=[(host / "none", "/a")])


async def test_files_the_code_makes_are_counted_not_how_often_it_opens_one(sandbox: MontySandbox) -> None:
    often = "for n in range(40):\n    with open('output/log', 'a') as f:\n        f.write('x')"
    result = await next_result(await sandbox.execute(often, limits=Limits(disk_files=5)))
    assert [(file.name, file.size) for file in result.files] == [("log", 40)]
    many = "for n in range(40):\n    open('output/' + str(n), 'w').close()"
    execution = await sandbox.execute(many, limits=Limits(disk_files=5))
    with pytest.raises(CodeLimitError) as over:
        await execution.next()
    assert over.value.limit == "disk_files"
    assert over.value.message.endswith("OSError: [Errno 28] No space left on device")
    assert len(over.value.files) == 5


def test_a_file_inside_a_mounted_directory_is_refused(host: Path) -> None:
    with pytest.raises(InvalidSetting) as refused:
        MontySandbox(workspace_root=host / "data", file_mounts=[(host / "notes.txt", "notes.txt")])
    assert refused.value.message == "Monty cannot show the file /input/notes.txt inside the directory /input"
    assert refused.value.hint == "mount it elsewhere, or use sandbox='jail', which lays mounts over each other"


async def test_nothing_is_left_of_output(
    sandbox: MontySandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    async with sandbox.session() as session:
        await run(session, "open('output/a', 'w').write('x')")
        await sandbox.execute("open('output/b', 'w').write('x')\nwhile True:\n    pass")
        await (await sandbox.execute("1")).next()
    await sandbox.aclose()
    assert list((tmp_path / "scratch").iterdir()) == []
