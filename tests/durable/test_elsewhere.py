"""A run that paused here goes on elsewhere: under another user, on another patch version of Python; or says why not."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

import hatchway
from hatchway.core import codec
from hatchway.journal.sqlite import SqliteDatabase
from hatchway.sandboxes.registry import availability

PROGRAM = """
import asyncio, json, os, sys
sys.path[:0] = json.loads(sys.argv[1])
from hatchway import Allow, ApprovalRequired, CodeMode, tool

place, sandbox, code, wanted = json.loads(sys.argv[2])

@tool
def see(x: int) -> int:
    "See."
    return x + 1

@tool(approval="ask")
def pay(x: int) -> int:
    "Pay."
    with open(place + ".paid", "a") as f:
        f.write(f"{x}\\n")
    return x

async def main():
    async with CodeMode(sandbox, tools=[see, pay], journal=place) as mode:
        try:
            result = await (mode.resume(wanted[0], {wanted[1]: Allow()}) if wanted else mode.run(code))
            return {"output": result.output, "python": sys.version.split()[0], "uid": os.getuid()}
        except ApprovalRequired as e:
            return {"ids": [e.run_id, e.pending[0].call_id], "x": e.pending[0].kwargs["x"]}
        except Exception as e:
            return {"error": f"{type(e).__name__}: {e}"}

print(json.dumps(asyncio.run(main())))
"""
FULL = """
import random, time, uuid
order = list({str(n) for n in range(8)})
b = see(int(order[0]) + random.randrange(10**6) + time.time_ns() % 1000 + uuid.uuid4().int % 1000)
pay(b)
"""
SMALL = "pay(see(4) + see(5))"


@pytest.fixture
def folder() -> Generator[Path]:
    """One that other users can enter."""
    made = Path(tempfile.mkdtemp(prefix="hatchway-elsewhere-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture(params=["process", "jail", "monty"])
def sandbox(request: pytest.FixtureRequest) -> str:
    found = availability(request.param)
    if found.state != "usable":
        pytest.skip(f"{request.param}: {found.reason}")
    return request.param


def told(python: str, folder: Path, sandbox: str, wanted: list[str], *, user: str = "") -> dict[str, Any]:
    """What a process of this interpreter and user says."""
    paths = [str(Path(hatchway.__file__).parents[1]), sysconfig.get_paths()["purelib"]]
    job = [str(folder / "journal.db"), sandbox, SMALL if sandbox == "monty" else FULL, wanted]
    monty = Path(sysconfig.get_path("scripts")) / "monty"
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "HATCHWAY_KEY_FILE": str(folder / "key"),
        "MONTY_BIN": str(monty),
    }
    done = subprocess.run(
        [python, "-c", PROGRAM, json.dumps(paths), json.dumps(job)],
        capture_output=True,
        text=True,
        env=env,
        cwd=folder,
        timeout=100,
        **({"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []} if user else {}),  # type: ignore[arg-type]
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def other_python() -> str:
    """An interpreter of our minor version and another patch version."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for found in (f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"):
        if os.path.exists(found):
            said = subprocess.run([found, "-V"], capture_output=True, text=True).stdout.split()[-1]
            if said != sys.version.split()[0]:
                return found
    pytest.skip(f"there is no other Python {version} here than {sys.version.split()[0]}")


def test_another_patch_version_goes_on(folder: Path, sandbox: str) -> None:
    python = other_python()
    paused = told(sys.executable, folder, sandbox, [])
    ended = told(python, folder, sandbox, paused["ids"])
    assert ended["output"] == paused["x"], ended
    assert ended["python"] != sys.version.split()[0]
    assert (folder / "journal.db.paid").read_text().split() == [str(paused["x"])]


def test_another_user_with_the_key_goes_on(folder: Path, sandbox: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    python = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    places = [Path(python), Path(hatchway.__file__), Path(sysconfig.get_paths()["purelib"])]
    if not all(parent.stat().st_mode & 1 for place in places if place.exists() for parent in place.parents):
        pytest.skip("our files are closed to other users")
    if not Path(python).exists():
        pytest.skip(f"there is no {python}")
    paused = told(python, folder, sandbox, [])
    for path in (folder, *folder.rglob("*")):
        shutil.chown(path, "nobody")
    ended = told(python, folder, sandbox, paused["ids"], user="nobody")
    assert (ended.get("output"), ended.get("uid")) == (paused["x"], pwd.getpwnam("nobody").pw_uid), ended


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("python", "3.9", "it was made with python 3.9, here it is 3."),
        ("packages", "numpy==2.1", "it was made with packages numpy==2.1, here it is "),
    ],
)
def test_what_is_not_here_is_named(folder: Path, name: str, value: str, why: str) -> None:
    paused = told(sys.executable, folder, "process", [])
    db = SqliteDatabase(str(folder / "journal.db"))
    head: Any = codec.loads(db.query("SELECT head FROM runs")[0][0].encode())
    assert name in head["facts"]
    head["facts"][name] = value
    db.execute("UPDATE runs SET head = ?", (codec.dumps(head).decode(),))
    db.close()
    error = told(sys.executable, folder, "process", paused["ids"])["error"]
    assert error.startswith(f"CheckpointRefused: checkpoint refused: {why}"), error
    assert not (folder / "journal.db.paid").exists()
