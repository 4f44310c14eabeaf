"""A user without a home that can be written to: runs are stored, and go on in another process all the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STRANGER = 1_000_000 + os.getpid()
"""An uid nobody has, no other test either: the system keeps no home for it."""
TOOLS = '''
from hatchway import tool

@tool(approval="ask")
def note(text: str) -> str:
    """Note a text."""
    open("noted", "a").write(text + " ")
    return text
'''
CODE = """
words = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"}
for word in words:
    note(word)
list(words)
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run() -> Iterator[Run]:
    """Runs `hatchway` in a folder of its own, as a user whose home is nowhere."""
    uid = STRANGER if os.geteuid() == 0 else os.getuid()
    kept = Path(f"/var/tmp/hatchway-{uid}")
    if kept.exists():
        pytest.skip(f"{kept} is in use")
    environ = {"HOME": "/nonexistent", "PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1"}
    environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), sysconfig.get_paths()["purelib"]])
    with tempfile.TemporaryDirectory(prefix="hatchway-test-") as folder:
        os.chown(folder, uid, -1)
        Path(folder, "tools.py").write_text(TOOLS)
        Path(folder, "action.py").write_text(CODE)
        as_user = {"user": uid, "group": uid, "extra_groups": []} if os.geteuid() == 0 else {}

        def run(*args: str) -> subprocess.CompletedProcess[str]:
            command = [_reachable_python(), "-m", "hatchway", *args, "--journal", "journal.db"]
            return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, **as_user)  # type: ignore[call-overload]

        run.folder = Path(folder)  # type: ignore[attr-defined]
        yield run
    shutil.rmtree(kept, ignore_errors=True)


def _reachable_python() -> str:
    real = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    if os.geteuid() != 0 or all(folder.stat().st_mode & 1 for folder in Path(real).parents):
        return sys.executable
    python = f"/usr/bin/python3.{sys.version_info.minor}"
    if not os.path.exists(python):
        pytest.skip(f"{real} is closed to other users, and there is no {python}")
    return python


@pytest.mark.parametrize("sandbox", ["process", "jail"])
def test_a_run_moves_between_processes(run: Run, sandbox: str) -> None:
    """The order of the set decides which call comes next: each process must have the seed of the first."""
    stands = run("exec", "action.py", "--tools", "tools.py", "--sandbox", sandbox)
    if "Error: " in stands.stderr and sandbox == "jail":
        pytest.skip(stands.stderr)
    assert stands.returncode == 5, stands.stderr
    word = next(words[1] for line in stands.stderr.splitlines() if (words := line.split())[:1] == ["run"])
    for left in range(8, 0, -1):
        resumed = run("approve", word[:8], "--resume", "--tools", "tools.py")
        assert resumed.returncode == (5 if left > 1 else 0), resumed.stderr
    noted = (run.folder / "noted").read_text().split()  # type: ignore[attr-defined]
    assert resumed.stdout.splitlines()[-1] == repr(noted)
    assert len(set(noted)) == 8


def test_the_key_is_the_users_alone(run: Run) -> None:
    run("exec", "action.py", "--tools", "tools.py", "--sandbox", "process")
    uid = STRANGER if os.geteuid() == 0 else os.getuid()
    key = Path(f"/var/tmp/hatchway-{uid}/signing.key")
    assert [oct(path.stat().st_mode & 0o777) for path in (key.parent, key)] == ["0o700", "0o600"]
    key.parent.chmod(0o777)  # as a folder that somebody else had prepared
    refused = run("exec", "action.py", "--tools", "tools.py", "--sandbox", "process")
    assert refused.returncode == 2
    assert refused.stderr.startswith(
        f"Error: {key.parent} is not a folder of this user alone\nexport HATCHWAY_KEY_FILE="
    )
    key.parent.chmod(0o700)
