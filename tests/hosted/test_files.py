"""Files to and from a vendor: nothing leaves the allowed roots, nothing is written outside the folder."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.errors import InvalidSetting
from hatchway.core.results import ExecFile
from hatchway.hosted import (
    AnthropicAdapter,
    FileRef,
    GeminiAdapter,
    HostMount,
    OpenAIAdapter,
    UploadProgress,
    VfsPath,
    code_tool,
)
from hatchway.hosted.downloads import MAX_NAME, safe_name, save_all
from hatchway.hosted.mounts import FileRules, collect
from hatchway.testing import ScriptedVendor, VendorSays

ADAPTERS: dict[str, Any] = {"openai": OpenAIAdapter, "anthropic": AnthropicAdapter, "gemini": GeminiAdapter}
RULES = FileRules(max_file_bytes=512 * 1024 * 1024, suffixes=frozenset({".py", ".txt", ".md"}))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with files of several kinds, beside one with a secret."""
    (tmp_path / "secret.txt").write_text("secret")
    inside = tmp_path / "root"
    (inside / "app" / "__pycache__").mkdir(parents=True)
    (inside / "app" / "deep" / "er").mkdir(parents=True)
    for name in ("a.py", "b.md", "__pycache__/c.py", "deep/d.py", "deep/er/e.txt"):
        (inside / "app" / name).write_text(name)
    return inside


def names(root: Path, **mount: object) -> list[str]:
    return sorted(file.name for file in collect([HostMount(**{"host_path": "app", **mount})], [root], RULES))  # type: ignore[arg-type]


def test_globs(root: Path) -> None:
    assert names(root) == ["app/__pycache__/c.py", "app/a.py", "app/b.md", "app/deep/d.py", "app/deep/er/e.txt"]
    assert names(root, include_glob=("*.py",), exclude_glob=("**/__pycache__/**",)) == ["app/a.py", "app/deep/d.py"]
    assert names(root, include_glob=("deep/*",)) == ["app/deep/d.py"]
    assert names(root, include_glob=("deep/**",)) == ["app/deep/d.py", "app/deep/er/e.txt"]
    assert names(root, include_glob=("?.md",)) == ["app/b.md"]
    with pytest.raises(InvalidSetting, match="the mount 'app' has no file for the code") as caught:
        names(root, include_glob=("[b-z].py",), exclude_glob=("[cd].py",))
    assert caught.value.hint == "check host_path, include_glob and exclude_glob; links need follow_symlinks=True"
    assert names(root, include_glob=("[ab].*",)) == ["app/a.py", "app/b.md"]
    assert names(root, include_glob=("[!ab].py",)) == ["app/__pycache__/c.py", "app/deep/d.py"]
    assert names(root, include_glob=("deep/[a-d].py", "**/[e-f].txt")) == ["app/deep/d.py", "app/deep/er/e.txt"]
    with pytest.raises(InvalidSetting, match=r"^'\[z-a\]' is no glob: bad character range"):
        HostMount(host_path="app", include_glob=("[z-a]",))
    mounted = names(root, mount_path=VfsPath(("workspace", "x")), include_glob=("a.py",))
    assert mounted == ["workspace/x/a.py"]
    assert names(root, host_path="app/a.py") == ["app/a.py"]
    assert collect([HostMount(host_path="app/a.py")], [root], RULES)[0].upload_name == "app__a.py"


@pytest.mark.parametrize("path", [".", "./", "app/", "./app", Path("app")])
def test_a_path_is_told_without_its_detours(root: Path, path: Any) -> None:
    assert "app/a.py" in names(root, host_path=path)


def test_one_text_is_not_taken_apart(root: Path, tmp_path: Path) -> None:
    """`include_glob="*.py"` would be the globs `*`, `.`, `p`, `y`, and `"/srv"` would allow `/`."""
    for field in ("include_glob", "exclude_glob"):
        with pytest.raises(InvalidSetting, match=f"{field} takes several, not one str") as told:
            HostMount(host_path="app", **{field: "*.py"})
        assert told.value.hint == f"{field}=[…], also for one"
    with pytest.raises(InvalidSetting, match="segments takes several, not one str"):
        VfsPath("abc")  # type: ignore[arg-type]
    assert VfsPath(["a", "b"]) == VfsPath(("a", "b"))  # type: ignore[arg-type]
    assert HostMount(host_path="app", mount_path="/a/b").mount_path == VfsPath(("a", "b"))  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="mount_path is a VfsPath, not 3"):
        HostMount(host_path="app", mount_path=3)  # type: ignore[arg-type]


@pytest.mark.anyio
@pytest.mark.parametrize("given", [str, Path, lambda root: [str(root)], lambda root: (root,)])
async def test_a_single_root_allows_that_folder_and_no_other(root: Path, given: Any) -> None:
    vendor = ScriptedVendor("openai", [VendorSays("x")] * 2)
    for path, is_allowed in (("app/a.py", True), (str(root / "app" / "a.py")[1:], False)):
        code = code_tool("openai", host_mounts=[HostMount(host_path=path)])
        settings: dict[str, Any] = {"tools": [code], "allowed_host_roots": given(root)}
        async with OpenAIAdapter("m", client=vendor.client(), **settings) as adapter:
            if is_allowed:
                assert list((await adapter.run("go")).session.placed) == ["app/a.py"]  # type: ignore[union-attr]
                continue
            with pytest.raises(InvalidSetting, match="is in none of the allowed roots"):
                await adapter.run("go")
    for wrong in ([3], 3, [""], {"a": 1}):
        with pytest.raises(InvalidSetting, match="allowed_host_roots"):
            OpenAIAdapter("m", client=vendor.client(), allowed_host_roots=wrong)


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret.txt", "app/../../secret.txt", "", "a\0b"])
def test_paths_that_leave_are_refused_at_once(path: str) -> None:
    with pytest.raises(InvalidSetting, match="relative to an allowed root"):
        HostMount(host_path=path)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"host_path": 5}, "host_path is a path, not 5"),
        ({"host_path": None}, "host_path is a path, not None"),
        ({"host_path": b"app"}, "host_path is a path, not b'app'"),
        ({"max_bytes": "x"}, "max_bytes is at least 0, not 'x'"),
        ({"max_bytes": -1}, "max_bytes is at least 0, not -1"),
        ({"max_bytes": True}, "max_bytes is at least 0, not True"),
        ({"follow_symlinks": "no"}, "follow_symlinks is True or False, not 'no'"),
    ],
)
def test_a_mount_is_of_its_types(given: Any, words: str) -> None:
    with pytest.raises(InvalidSetting) as told:
        HostMount(**{"host_path": "app", **given})
    assert told.value.message == words


@pytest.mark.parametrize("segment", ["..", ".", "", "a/b", "a\0"])
def test_segments_that_are_none(segment: str) -> None:
    with pytest.raises(InvalidSetting, match="no segment of a path"):
        VfsPath(("ok", segment))


def test_links_do_not_lead_out(root: Path) -> None:
    (root / "app" / "link.txt").symlink_to(root.parent / "secret.txt")
    assert "app/link.txt" not in names(root)
    with pytest.raises(InvalidSetting, match="leads out of the allowed root"):
        names(root, follow_symlinks=True)
    assert "app/link.txt" not in names(root, follow_symlinks=True, exclude_glob=("link.txt",))  # as the hint says
    (root / "app" / "link.txt").unlink()
    (root / "app" / "near.txt").symlink_to(root / "app" / "b.md")
    assert "app/near.txt" not in names(root)
    assert "app/near.txt" in names(root, follow_symlinks=True)
    (root / "out").symlink_to(root.parent)
    with pytest.raises(InvalidSetting, match="goes through a link"):
        names(root, host_path="out")
    with pytest.raises(InvalidSetting, match="leads out of the allowed root"):
        names(root, host_path="out", follow_symlinks=True)


@pytest.mark.parametrize("follow", [False, True])
def test_links_that_lead_back_to_themselves(root: Path, follow: bool) -> None:
    before = names(root)
    (root / "app" / "one").symlink_to("other")
    (root / "app" / "other").symlink_to("one")
    (root / "app" / "self").symlink_to(root / "app")
    assert names(root, follow_symlinks=follow) == before
    with pytest.raises(InvalidSetting):
        names(root, host_path="app/one", follow_symlinks=follow)


def test_what_no_vendor_takes(root: Path) -> None:
    with pytest.raises(InvalidSetting, match="is in none of the allowed roots"):
        names(root, host_path="nothing")
    with pytest.raises(InvalidSetting, match="allowed_host_roots"):
        collect([HostMount(host_path="app")], [], RULES)
    with pytest.raises(InvalidSetting, match="more than its 10 bytes"):
        names(root, max_bytes=10)
    (root / "app" / "x.exe").write_text("x")
    with pytest.raises(InvalidSetting, match=r"'x.exe': files of type \.exe are not supported"):
        names(root)
    (root / "app" / "x.exe").unlink()
    os.mkfifo(root / "app" / "pipe.txt")
    assert "app/pipe.txt" not in names(root)
    with open(root / "app" / "huge.txt", "wb") as f:
        f.truncate(600 * 1024 * 1024)  # sparse: it takes no room, and is refused before it is read
    with pytest.raises(InvalidSetting, match=r"'huge\.txt' has 629145600 bytes; a file may have 536870912"):
        names(root)


def test_the_same_bytes_have_one_digest(root: Path) -> None:
    (root / "app" / "same.py").write_text("a.py")
    files = {file.name: file.digest for file in collect([HostMount(host_path="app")], [root], RULES)}
    assert files["app/same.py"] == files["app/a.py"] != files["app/b.md"]


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("plot.png", "plot.png"),
        ("../../x", "x"),
        ("/etc/passwd", "passwd"),
        ("..\\..\\x.txt", "x.txt"),
        ("..", "cfile_1"),
        ("", "cfile_1"),
        (".bashrc", "bashrc"),
        ("a\nb\x1b[31m.txt", "a_b__31m.txt"),
        ("\u202egnp.exe", "_gnp.exe"),
        ("CON.txt", "_CON.txt"),
        ("nul .txt", "_nul .txt"),
        ("COM¹.txt", "_COM¹.txt"),
        ("come.txt", "come.txt"),
        ("a:b", "a_b"),
        ("x" * 300 + ".png", "x" * (MAX_NAME - 4) + ".png"),
        ("x." + "y" * 300, "x." + "y" * (MAX_NAME - 2)),
        ("Übersicht 2026.csv", "Übersicht 2026.csv"),
        ("データ.csv", "データ.csv"),
        ("\u0438\u0306.txt", "\u0439.txt"),
        ("é" * 200 + ".png", "é" * 58 + ".png"),
        ("a\ud800b.txt", "a_b.txt"),
    ],
)
def test_names_of_strangers(given: str, safe: str) -> None:
    assert safe_name(given, "cfile_1") == safe


@pytest.mark.anyio
async def test_downloads_stay_in_their_folder_and_replace_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (tmp_path / "target").write_text("mine")
    (folder / "x").symlink_to(tmp_path / "target")
    (folder / "a.txt").write_text("mine")

    async def fetch(file: FileRef) -> bytes:
        return file.file_id.encode()

    named = [("1", "../../x"), ("2", "a.txt"), ("3", "a.txt"), ("1", "again")]
    files = [FileRef(provider="openai", file_id=file_id, filename=name) for file_id, name in named]
    written = await save_all(files, folder, fetch)
    assert {key: path.name for key, path in written.items()} == {"1": "x (2)", "2": "a (2).txt", "3": "a (3).txt"}
    assert (tmp_path / "target").read_text() == (folder / "a.txt").read_text() == "mine"
    assert all(path.parent == folder for path in written.values())
    with pytest.raises(InvalidSetting, match="cannot be a folder"):
        await save_all(files, tmp_path / "target", fetch)


@pytest.mark.anyio
@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
async def test_files_given_with_a_request(provider: Any, tmp_path: Path) -> None:
    """Beside those that are mounted: each turn brings its own, the mounted ones are there from the first."""
    (tmp_path / "mounted.csv").write_text("0")
    vendor = ScriptedVendor(provider, [VendorSays("x")] * 3)
    code = code_tool(provider, host_mounts=(HostMount(host_path="mounted.csv"),))
    events: list[Any] = []
    settings: dict[str, Any] = {"tools": [code], "allowed_host_roots": [tmp_path], "on_event": events.append}
    async with ADAPTERS[provider]("m", client=vendor.client(), **settings) as adapter:
        session = adapter.session()
        for number in (1, 2):
            given = ExecFile(name=f"{number}.csv", content=str(number).encode(), mime_type="text/csv")
            await adapter.run("go", session=session, files=[given])
        await adapter.run("go", session=session)
    uploads = [event.name for event in events if isinstance(event, UploadProgress)]
    assert uploads == ["mounted.csv", "1.csv", "2.csv"]
    assert sorted(session.placed) == ["1.csv", "2.csv", "mounted.csv"]
    assert all(f"{name}: " in json.dumps(vendor.asked[2]) for name in session.placed)
    async with ADAPTERS[provider]("m", client=vendor.client()) as bare:
        with pytest.raises(InvalidSetting, match="it was offered no code tool"):
            await bare.run("go", files=[ExecFile(name="a.csv", content=b"", mime_type="")])


@pytest.mark.anyio
async def test_the_same_bytes_under_two_names_are_told_where_they_really_are(tmp_path: Path) -> None:
    """Anthropic's code finds a file under the name it was uploaded with, and it is uploaded once."""
    for name in ("first.txt", "second.txt"):
        (tmp_path / name).write_text("same")
    vendor = ScriptedVendor("anthropic", [VendorSays("x")])
    code = code_tool("anthropic", host_mounts=[HostMount(host_path=".")], file_ids=["file_before"])
    settings: dict[str, Any] = {"tools": [code], "allowed_host_roots": tmp_path}
    async with AnthropicAdapter("m", client=vendor.client(), **settings) as adapter:
        placed = (await adapter.run("go")).session.placed  # type: ignore[union-attr]
    under = "under the name first.txt"
    assert placed == {"first.txt": under, "second.txt": under, "file_before": "uploaded before"}
    said = vendor.asked[0]["messages"][0]["content"]
    assert [block.get("file_id") for block in said] == ["file_before", "file_1", None]
