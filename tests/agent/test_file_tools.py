"""File tools against a workspace that somebody hostile writes to."""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from hatchway.agent.file_tools import FileTools
from hatchway.agent.workspace_files import WorkspaceFiles
from hatchway.core.errors import ToolError


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace"


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("../outside/secret.txt", "names no file of the workspace"),
        ("a/../../outside/secret.txt", "names no file of the workspace"),
        ("/etc/passwd", "lies outside the workspace"),
        ("", "names no file of the workspace"),
        (".", "names no file of the workspace"),
        ("a\0b", "names no file of the workspace"),
        ("link.txt", "a link, which is not followed"),
        ("folder/secret.txt", "Not a directory"),
        ("missing.txt", "there is no file missing.txt"),
        ("pipe", "pipe is no regular file"),
        ("sub", "no regular file"),
    ],
)
def test_nothing_outside_can_be_read(path: str, says: str, workspace: Path) -> None:
    (workspace / "link.txt").symlink_to(workspace.parent / "outside" / "secret.txt")
    (workspace / "folder").symlink_to(workspace.parent / "outside")
    (workspace / "sub").mkdir()
    os.mkfifo(workspace / "pipe")
    with pytest.raises(ToolError, match=says):
        FileTools(workspace).read_file(path)


def test_nothing_outside_can_be_written(workspace: Path) -> None:
    tools = FileTools(workspace)
    (workspace / "folder").symlink_to(workspace.parent / "outside")
    (workspace / "link.txt").symlink_to(workspace.parent / "outside" / "secret.txt")
    for path in ("folder/new.txt", "link.txt", "../outside/new.txt"):
        with pytest.raises(ToolError):
            tools.write_file(path, "mine")
    assert [path.name for path in (workspace.parent / "outside").iterdir()] == ["secret.txt"]
    assert (workspace.parent / "outside" / "secret.txt").read_text() == "secret"


def test_a_folder_swapped_for_a_link_all_the_time_leads_nowhere(workspace: Path) -> None:
    outside, folder, aside = workspace.parent / "outside", workspace / "folder", workspace / "aside"
    folder.mkdir()
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            with suppress(OSError):  # the file tools make folders that are not there
                shutil.rmtree(aside, ignore_errors=True)
                folder.rename(aside)
                folder.symlink_to(outside)
                folder.unlink()
                aside.rename(folder)

    swapping = threading.Thread(target=swap)
    swapping.start()
    files, written = WorkspaceFiles(workspace), 0
    try:
        for number in range(300):
            try:
                files.write(f"folder/{number}.txt", b"mine")
                written += 1
            except (ToolError, OSError):
                pass
    finally:
        stop.set()
        swapping.join()
    assert written
    assert [path.name for path in outside.iterdir()] == ["secret.txt"]


def test_what_was_shown_is_what_is_changed(workspace: Path) -> None:
    tools = FileTools(workspace)
    (workspace / "a.txt").write_text("one")
    assert "+two" in tools.write_diff({"path": "a.txt", "content": "two"})
    (workspace / "a.txt").write_text("changed by somebody")
    with pytest.raises(ToolError, match=r"a\.txt was changed by somebody else meanwhile; nothing was written"):
        tools.write_file("a.txt", "two")
    assert (workspace / "a.txt").read_text() == "changed by somebody"
    (workspace / "a.txt").chmod(0o755)
    assert tools.write_file("a.txt", "three\nlines\n") == "a.txt written, 2 lines"
    assert (workspace / "a.txt").stat().st_mode & 0o777 == 0o755
    assert [path.name for path in workspace.iterdir()] == ["a.txt"]


def test_edits_are_all_made_or_none(workspace: Path) -> None:
    tools = FileTools(workspace)
    (workspace / "a.txt").write_text("one two two")
    edits = [{"old": "one", "new": "1"}, {"old": "two", "new": "2"}]
    with pytest.raises(
        ToolError, match=r"edit 2: its old text stands 2 times in a\.txt, not once; nothing was changed"
    ):
        tools.edit_file("a.txt", edits)  # type: ignore[arg-type]
    assert (workspace / "a.txt").read_text() == "one two two"
    assert tools.edit_file("a.txt", [{"old": "one two", "new": "1"}]) == "a.txt changed in 1 place"
    assert (workspace / "a.txt").read_text() == "1 two"


def test_long_and_odd_files(workspace: Path) -> None:
    tools = FileTools(workspace)
    (workspace / "long.txt").write_text("".join(f"{n}\n" for n in range(5000)))
    assert tools.read_file("long.txt", offset=4999) == "4998\n4999\n"
    assert tools.read_file("long.txt", limit=1) == "0\n\n[4999 more lines; go on with offset=2]"
    (workspace / "data.bin").write_bytes(b"\0\1")
    with pytest.raises(ToolError, match="no text file"):
        tools.read_file("data.bin")
    (workspace / "huge.txt").touch()
    os.truncate(workspace / "huge.txt", 50_000_000)
    with pytest.raises(ToolError, match="more than can be read at once"):
        tools.read_file("huge.txt")
    (workspace / ".env.local").write_text("KEY=1")
    with pytest.raises(ToolError, match="holds secrets"):
        tools.read_file(".env.local")


def test_what_lies_beside_a_file_is_neither_written_nor_waited_for(workspace: Path) -> None:
    (workspace / "a.txt").write_text("one")
    (workspace / "other.txt").write_text("precious")
    os.link(workspace / "other.txt", workspace / f".a.txt.{os.getpid()}")
    os.mkfifo(workspace / f".b.txt.{os.getpid()}")
    (workspace / "a.txt").chmod(0o666)
    FileTools(workspace).write_file("a.txt", "two")
    FileTools(workspace).write_file("b.txt", "two")
    assert (workspace / "other.txt").read_text() == "precious"
    assert (workspace / "a.txt").stat().st_mode & 0o777 == 0o666


def test_a_file_that_is_not_utf8_is_not_changed_into_something_else(workspace: Path) -> None:
    (workspace / "old.txt").write_bytes(b"caf\xe9 x")
    tools = FileTools(workspace)
    assert tools.read_file("old.txt") == "caf\ufffd x"
    with pytest.raises(ToolError, match=r"old\.txt is not written in UTF-8\nchange it in a code action"):
        tools.edit_file("old.txt", [{"old": "x", "new": "y"}])
    assert (workspace / "old.txt").read_bytes() == b"caf\xe9 x"


@pytest.mark.parametrize("path", ["half \ud800", "x" * 300, "a.txt/b"])
def test_a_name_no_file_can_have_is_an_error_of_the_tool(path: str, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one")
    tools = FileTools(workspace)
    arguments = {"path": path, "edits": [{"old": "a", "new": "b"}]}
    for attempt in (tools.read_file, lambda each: tools.write_file(each, ""), lambda _: tools.edit_diff(arguments)):
        with pytest.raises(ToolError):
            attempt(path)


def test_an_edit_has_the_line_ends_of_the_file(workspace: Path) -> None:
    tools = FileTools(workspace)
    (workspace / "dos.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    tools.edit_file("dos.txt", [{"old": "one\ntwo", "new": "1\n2\n"}])
    assert (workspace / "dos.txt").read_bytes() == b"1\r\n2\r\n\r\nthree\r\n"
    tools.edit_file("dos.txt", [{"old": "2\r\n\r\nthree", "new": "3"}])
    assert (workspace / "dos.txt").read_bytes() == b"1\r\n3\r\n"
    with pytest.raises(ToolError) as caught:
        tools.edit_file("dos.txt", [{"old": "four", "new": "5"}])
    assert str(caught.value) == (
        "edit 1: its old text stands 0 times in dos.txt, not once; nothing was changed\n"
        "quote it as read_file shows it, with its spaces"
    )


@pytest.mark.parametrize(("name", "content"), [(".env", b"KEY=1\n"), ("picture.bin", b"\0\1")])
def test_who_is_asked_sees_that_a_file_is_replaced_unseen(name: str, content: bytes, workspace: Path) -> None:
    tools = FileTools(workspace)
    new = f"+++ b/{name}\n@@ -0,0 +1 @@\n+x\n"
    assert tools.write_diff({"path": name, "content": "x\n"}) == f"--- a/{name}\n{new}"
    (workspace / name).write_bytes(content)
    shown = f"--- a/{name} (is there already; what it holds is not shown)\n{new}"
    assert tools.write_diff({"path": name, "content": "x\n"}) == shown
