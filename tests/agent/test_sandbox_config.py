"""The restrictions of code actions, seen from inside the real jail, behind each wall that works here."""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hatchway import CodeMode
from hatchway.agent.sandbox_config import (
    SandboxConfig,
    load_sandbox_config,
    missing_places,
    readable_places,
    sandbox_settings,
)
from hatchway.core.errors import InvalidSetting, SandboxUnavailable
from hatchway.sandboxes.jail import JailSandbox

LOOK = """
def look(function, *arguments):
    try:
        function(*arguments)
        return "yes"
    except PermissionError:
        return "denied"
    except OSError as e:
        return {30: "read-only", 2: "nothing there"}.get(e.errno, str(e.errno))

def read(path):
    return look(lambda: open(path).close())

def write(path):
    return look(lambda: open(path, "a").close())

import os, shutil
"""


@pytest.fixture
def workspace() -> Iterator[Path]:
    """A folder that the code's own uid may write where it has one, as root's has behind Landlock."""
    with tempfile.TemporaryDirectory(prefix="hatchway-test-", dir="/var/tmp") as name:
        place = Path(name).resolve()
        place.chmod(0o777)
        (place / ".env").write_text("SECRET=1")
        (place / "notes.txt").write_text("hello")
        (place / "notes.txt").chmod(0o666)
        for folder in (".hatchway", ".hatchway/plans", ".git", ".git/hooks", "deep", "deep/er"):
            (place / folder).mkdir()
            (place / folder).chmod(0o777)
        (place / "deep" / "er" / ".env").write_text("SECRET=2")
        (place / ".hatchway" / "permissions.json").write_text("{}")
        yield place


@pytest.fixture(params=["namespaces", "landlock"])
def tier(request: pytest.FixtureRequest) -> str:
    return request.param


def inside(tier: str, workspace: Path, config: SandboxConfig, code: str, **more: Any) -> Any:
    """What the code gives in a jail with these restrictions; skips where the wall cannot be had."""
    python = f"/usr/bin/python3.{sys.version_info.minor}" if tier == "landlock" and os.geteuid() == 0 else None
    if python is not None and not os.path.exists(python):
        pytest.skip(f"behind Landlock root's code cannot reach {sys.executable}, and there is no {python}")

    async def main() -> Any:
        settings = {**sandbox_settings(config, workspace), **more}
        async with JailSandbox(tier=tier, python=python, spares=0, **settings) as jail, CodeMode(jail) as mode:  # type: ignore
            return (await mode.run(LOOK + code)).output

    try:
        return asyncio.run(main())
    except SandboxUnavailable as e:
        pytest.skip(e.message)


def test_by_default_all_but_secrets_is_read_and_the_workspace_written(tier: str, workspace: Path) -> None:
    other = Path(tempfile.mkdtemp(prefix="hatchway-test-", dir="/var/tmp"))
    try:
        other.chmod(0o755)
        (other / "data.txt").write_text("x")
        (other / ".env").write_text("x")
        seen = inside(
            tier, workspace, SandboxConfig(),
            f"""[os.getcwd(), read("notes.txt"), write("notes.txt"), write("new.txt"), write("deep/new.txt"),
            read(".env"), write(".env"), read("deep/er/.env"), read({str(other / "data.txt")!r}),
            read({str(other / ".env")!r}), write({str(other / "data.txt")!r}) != "yes",
            write({str(other / "n")!r}) != "yes", look(os.rename, ".env", "env.txt"), look(os.link, ".env", "env.txt"),
            look(shutil.copy, ".env", "env.txt")]""",
        )  # fmt: skip
    finally:
        for file in other.iterdir():
            file.unlink()
        other.rmdir()
    yes, no = "yes", "denied"
    assert seen == [str(workspace), yes, yes, yes, yes, no, no, no, yes, no, True, True, no, no, no]
    assert (workspace / "new.txt").exists()


def test_the_agents_folder_and_what_others_run_are_never_written(tier: str, workspace: Path) -> None:
    seen = inside(
        tier, workspace, SandboxConfig(),
        """
os.symlink(".hatchway", "way-in")
[read(".hatchway/permissions.json"), write(".hatchway/permissions.json"), write("way-in/permissions.json"),
 write(".hatchway/plans/x"), write(".hatchway/new"), look(os.rename, ".hatchway", "h"),
 look(shutil.rmtree, ".hatchway"),
 look(os.rename, "notes.txt", ".hatchway/permissions.json"), look(os.link, ".hatchway/permissions.json", "p"),
 write(".git/hooks/pre-commit"), write(".git/config"), look(os.rename, ".git", "g"), write(".bashrc"),
 write("deep/.envrc"), look(os.chmod, ".hatchway", 0), look(os.chmod, "way-in/permissions.json", 0o777),
 look(os.fchmod, os.open(".hatchway/permissions.json", os.O_RDONLY), 0), look(os.chmod, ".env", 0o644),
 look(os.chmod, f"/proc/self/fd/{os.open('.hatchway', os.O_RDONLY)}", 0),
 write(".git/index"), look(os.chmod, ".git/index", 0o700)]
""",
    )  # fmt: skip
    assert seen == ["yes", *["denied"] * 18, "yes", "yes"]
    assert (workspace / ".hatchway" / "permissions.json").read_text() == "{}"
    assert (workspace / ".git" / "index").stat().st_mode & 0o777 == 0o700


def test_modules_of_the_workspace_are_imported_after_all_others(tier: str, workspace: Path) -> None:
    for name in ("own", "json"):
        (workspace / f"{name}.py").write_text("X = 5")
        (workspace / f"{name}.py").chmod(0o666)
    assert inside(tier, workspace, SandboxConfig(), 'import own, json\n[own.X, hasattr(json, "X")]') == [5, False]


def test_a_workspace_without_the_folder_yet_cannot_be_given_one(tier: str, workspace: Path) -> None:
    (workspace / ".hatchway" / "permissions.json").unlink()
    (workspace / ".hatchway" / "plans").rmdir()
    (workspace / ".hatchway").rmdir()
    assert inside(tier, workspace, SandboxConfig(), 'look(os.mkdir, ".hatchway")') == "denied"


def test_there_is_no_network_by_default(tier: str, workspace: Path, web: Any) -> None:
    code = f"""
import urllib.request
try:
    urllib.request.urlopen({web.url!r}, timeout=5).read()
    got = "yes"
except Exception as e:
    got = "no"
[got, "fetch" in globals()]
"""
    assert inside(tier, workspace, SandboxConfig(), code) == ["no", False]
    assert list(web.seen) == []


def test_the_file_says_what_is_written_denied_and_reached(tier: str, workspace: Path, web: Any) -> None:
    path = workspace / "walls.json"
    path.write_text(
        json.dumps(
            {
                "network": {
                    "allowedDomains": [web.target],
                    "deniedDomains": ["example.org"],
                    "allowLocalBinding": True,
                },
                "filesystem": {
                    "denyRead": ["walls.json", "deep/er"],
                    "allowWrite": ["deep/**"],
                    "denyWrite": ["deep/*.lock"],
                },
            }
        )
    )
    code = f"""
got = [read("walls.json"), read("deep/er/.env"), read(".env"), write("notes.txt") != "yes", write("deep/a"),
       write("deep/a.lock")]
got + [(await fetch({web.url!r}))["status"]]
"""
    settings = {"allowed_domains": [web.target]}
    seen = inside(tier, workspace, load_sandbox_config(path), code, **settings)
    assert seen == ["denied", "denied", "yes", True, "yes", "denied", 200]


def test_the_file_of_restrictions_is_never_written(tier: str, workspace: Path) -> None:
    path = workspace / "walls.json"
    path.write_text('{"filesystem": {"denyRead": []}}')
    code = '[read("walls.json"), write("walls.json"), look(os.remove, "walls.json"), write("notes.txt")]'
    assert inside(tier, workspace, load_sandbox_config(path), code) == ["yes", "denied", "denied", "yes"]


def test_the_key_that_seals_checkpoints_is_read_by_no_code(
    tier: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(workspace / "key"))
    config = SandboxConfig.model_validate({"filesystem": {"denyRead": []}})
    (workspace / "key").write_bytes(b"x" * 32)
    (workspace / "key").chmod(0o600)
    assert inside(tier, workspace, config, '[read("key"), look(os.rename, "key", "k")]') == ["denied", "denied"]


def test_a_place_that_is_not_there_is_not_granted_and_told(tier: str, workspace: Path) -> None:
    allowed = {"allowWrite": [".", "~/Library/Jupyter/", "no-such/**"]}
    config = SandboxConfig.model_validate({"filesystem": allowed})
    assert missing_places(config, workspace) == ["~/Library/Jupyter/", "no-such/**"]
    assert inside(tier, workspace, config, '[write("notes.txt")]') == ["yes"]


def test_what_cannot_be_is_told(tmp_path: Path) -> None:
    climbs = SandboxConfig.model_validate({"filesystem": {"denyRead": [""]}})
    with pytest.raises(InvalidSetting, match="names nothing"):
        sandbox_settings(climbs, tmp_path)
    (tmp_path / "walls.json").write_text('{"network": {"allowedDomain": []}}')
    with pytest.raises(
        InvalidSetting, match=r"walls\.json:1:14: network\.allowedDomain: no such setting; did you mean"
    ):
        load_sandbox_config(tmp_path / "walls.json")


def test_the_system_itself_is_not_among_what_is_shown() -> None:
    assert not {Path("/"), Path("/etc"), Path("/proc"), Path("/dev"), Path("/sys"), Path("/run")} & set(
        readable_places()
    )


def test_what_the_system_or_the_jail_has_of_its_own_is_not_shown(tmp_path: Path) -> None:
    for name in ("home", "data", "etc", "input", "output"):
        (tmp_path / name).mkdir(mode=0o755)
    assert [place.name for place in readable_places(tmp_path)] == ["data", "home"]


def test_the_interpreter_of_the_system_lies_in_no_environment(tmp_path: Path) -> None:
    settings = sandbox_settings(SandboxConfig(), tmp_path, python=Path("/bin/python3"))
    denied = settings["paths"].deny_write
    assert "/bin/python3" in denied
    assert "/" not in denied
