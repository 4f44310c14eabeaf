"""Packages: what is asked for is checked, built once, whole or not there, and refused in uv's own words."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from hatchway.core.errors import InvalidSetting, SandboxUnavailable
from hatchway.sandboxes.packages import Packages
from hatchway.sandboxes.packages.cache import abi_of, build, cache_folder, place_of
from hatchway.sandboxes.packages.existing import environment_prefix, installed, site_packages
from hatchway.sandboxes.packages.requirements import as_packages

pytestmark = pytest.mark.anyio
Wanted = Callable[..., Packages]


@pytest.mark.parametrize("text", ["pandas", "pandas==2.*", "a.b-c_d[x,y]>=1,<2", "x ; python_version > '3'", "y~=1.0"])
def test_a_requirement_is_a_name_with_an_optional_version(text: str) -> None:
    assert Packages([text]).requirements == (text,)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["", "-r x", "--index-url=evil", "./here", "/a", "a @ https://x/y", "git+https://x", "a b", "a==/x", 3]
)
def test_nothing_else_passes_for_one(text: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        Packages((text,))
    assert refused.value.message == f"{text!r} is not a package with an optional version"


def test_one_text_is_no_list() -> None:
    for give in (lambda: as_packages("pandas"), lambda: Packages("pandas")):  # type: ignore[arg-type]
        with pytest.raises(InvalidSetting, match="takes a list, not one entry"):
            give()
    assert as_packages(()) is None


def test_the_key_tells_apart_what_gives_another_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Packages(("a", "b==1"))
    assert plain.key("abi") == Packages(("b == 1", "A"), on_progress=print, cache="elsewhere").key("abi")
    others = [
        Packages(("a", "b==2")).key("abi"),
        plain.key("other"),
        Packages(("a", "b==1"), index_url="https://x").key("abi"),
        Packages(("a", "b==1"), find_links=("x",)).key("abi"),
        Packages(("a", "b==1"), allow_sdists=True).key("abi"),
        Packages(("a", "b==1"), no_index=True).key("abi"),
    ]
    assert len({plain.key("abi"), *others}) == 7
    before = plain.key("abi")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://user:secret@index")
    assert plain.key("abi") not in (before, *others)
    assert "secret" not in plain.key("abi")


def test_the_cache_is_the_given_one_or_that_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HATCHWAY_CACHE", str(tmp_path))
    assert cache_folder(Packages(("a",))) == tmp_path / "packages"
    assert cache_folder(Packages(("a",), cache=tmp_path / "own")) == tmp_path / "own"
    monkeypatch.delenv("HATCHWAY_CACHE")
    assert cache_folder(Packages(("a",))).parts[-2:] == ("hatchway", "packages")


async def test_an_environment_is_built_once_and_says_so(packages: Wanted) -> None:
    lines: list[str] = []
    wanted = packages("numbers_of", on_progress=lines.append)
    place = place_of(wanted, sys.executable)
    await build(wanted, sys.executable, place)
    assert installed(str(place)) == ["numbers_of==1.0", "small==1.0"]
    assert lines[0] == f"building an environment with numbers_of; it is kept in {place.parent}"
    assert " + small==1.0" in lines
    told = len(lines)
    await build(wanted, sys.executable, place)
    assert len(lines) == told


async def test_many_who_want_the_same_wait_for_one_builder(packages: Wanted) -> None:
    heard: list[list[str]] = [[] for _ in range(6)]
    wanted = [packages("numbers_of", on_progress=lines.append) for lines in heard]
    place = place_of(wanted[0], sys.executable)
    await asyncio.gather(*(build(one, sys.executable, place) for one in wanted))
    assert sum(any(line.startswith("building") for line in lines) for lines in heard) == 1
    assert sum(lines == ["waiting for somebody else who builds the same environment"] for lines in heard) == 5
    assert sorted(path.name for path in place.parents[1].iterdir()) == [place.parent.name, f"{place.parent.name}.lock"]


KILLED = """
    import asyncio, os, signal, sys
    from hatchway.sandboxes.packages import Packages
    from hatchway.sandboxes.packages.cache import build, place_of

    def die(line):
        if line.startswith("Using") or line.startswith("Resolved"):
            os.kill(os.getpid(), signal.SIGKILL)

    wanted = Packages(("numbers_of",), no_index=True, find_links=(sys.argv[1],), cache=sys.argv[2], on_progress=die)
    asyncio.run(build(wanted, sys.executable, place_of(wanted, sys.executable)))
"""


async def test_a_killed_builder_leaves_nothing_that_passes_for_whole(
    packages: Wanted, wheelhouse: Path, open_path: Path
) -> None:
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(wheelhouse), str(open_path / "cache")]
    killed = subprocess.run(command, capture_output=True, timeout=60)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    wanted = packages("numbers_of")
    place = place_of(wanted, sys.executable)
    assert not place.exists()
    await build(wanted, sys.executable, place)
    assert installed(str(place)) == ["numbers_of==1.0", "small==1.0"]
    assert list(place.parents[1].glob("*.new-*")) == []


async def test_a_cancelled_build_leaves_nothing_and_can_be_done_again(packages: Wanted) -> None:
    began = asyncio.Event()
    wanted = packages("numbers_of", on_progress=lambda line: began.set())
    place = place_of(wanted, sys.executable)
    building = asyncio.create_task(build(wanted, sys.executable, place))
    await began.wait()
    building.cancel()
    with pytest.raises(asyncio.CancelledError):
        await building
    assert [path.name for path in place.parents[1].iterdir()] == [f"{place.parent.name}.lock"]
    await build(wanted, sys.executable, place)
    assert place.is_dir()


async def test_what_cannot_be_installed_is_told_in_the_words_of_uv(packages: Wanted) -> None:
    wanted = packages("small==7")
    with pytest.raises(SandboxUnavailable) as refused:
        await build(wanted, sys.executable, place_of(wanted, sys.executable))
    assert refused.value.message.startswith("the packages cannot be installed: small==7\nerror: No solution found")
    assert "there is no version of small==7" in refused.value.message
    assert refused.value.hint == "check the names and versions, and that the index can be reached"
    assert not place_of(wanted, sys.executable).exists()


async def test_a_source_distribution_is_refused_and_its_build_code_does_not_run(
    packages: Wanted, tmp_path: Path
) -> None:
    wanted = packages("unbuilt")
    with pytest.raises(SandboxUnavailable, match="building from source is disabled") as refused:
        await build(wanted, sys.executable, place_of(wanted, sys.executable))
    assert refused.value.hint == (
        "only wheels are installed; Packages([...], allow_sdists=True) runs build code on this host, unsealed"
    )
    assert not (tmp_path / "built").exists()


async def test_build_code_runs_only_where_that_was_agreed_to_and_it_is_said(packages: Wanted, tmp_path: Path) -> None:
    lines: list[str] = []
    wanted = packages("unbuilt", allow_sdists=True, on_progress=lines.append)
    with pytest.raises(SandboxUnavailable, match="the build code ran"):
        await build(wanted, sys.executable, place_of(wanted, sys.executable))
    assert lines[1] == "packages without a wheel run their build code on this host, unsealed"
    assert (tmp_path / "built").exists()


async def test_a_cache_others_can_write_to_is_refused(packages: Wanted, open_path: Path) -> None:
    (open_path / "cache").mkdir()
    (open_path / "cache").chmod(0o777)
    wanted = packages("small")
    with pytest.raises(SandboxUnavailable) as refused:
        await build(wanted, sys.executable, place_of(wanted, sys.executable))
    assert refused.value.message == (
        f"the package cache {open_path / 'cache'} belongs to somebody else, or others can write to it"
    )


async def test_a_narrow_umask_does_not_close_the_environment(packages: Wanted) -> None:
    before = os.umask(0o077)
    try:
        wanted = packages("small")
        place = place_of(wanted, sys.executable)
        await build(wanted, sys.executable, place)
    finally:
        os.umask(before)
    closed = [path for path in (place.parent, *place.rglob("*")) if path.stat().st_mode & 0o004 == 0]
    assert [path.name for path in closed if path.name != ".lock"] == []


def test_without_uv_the_error_says_the_command() -> None:
    code = """
        import os, sys
        sys.modules["uv"] = None
        os.environ["PATH"] = "/nowhere"
        import importlib.util
        from hatchway.core.errors import MissingExtra
        from hatchway.sandboxes.packages.uv import find_uv
        try:
            find_uv()
        except MissingExtra as e:
            print(e)
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)
    assert ran.stdout == "packages= needs uv, which is not installed\npip install 'hatchway[packages]'\n", ran.stderr


def test_an_environment_is_known_by_its_folders(tmp_path: Path) -> None:
    bare = tmp_path / "usr" / "bin" / "python"
    bare.parent.mkdir(parents=True)
    (tmp_path / "usr" / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    assert (environment_prefix(str(bare)), site_packages(str(bare))) == (None, ())
    (tmp_path / "usr" / "pyvenv.cfg").touch()
    assert site_packages(str(bare)) == (str(tmp_path / "usr" / "lib" / "python3.11" / "site-packages"),)


def test_the_abi_of_something_that_is_no_python() -> None:
    with pytest.raises(InvalidSetting, match="is no Python that runs"):
        abi_of("/nowhere/python")
