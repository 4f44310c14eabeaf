"""Deaths and recoveries, on every backend that works here."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from hatchway.sandboxes.registry import availability
from hatchway.sandboxes.wall import landlock

LAB = Path(__file__).parent / "lab.py"


class Lab:
    """A running laboratory: `lab.run(job, job, …)` gives what became of each."""

    def __init__(self, env: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(LAB)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )

    def run(self, *jobs: dict[str, Any]) -> list[dict[str, Any]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(jobs) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(10)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Generator[Lab]:
    """A laboratory with a key of its own."""
    key = tmp_path_factory.mktemp("key") / "key"
    running = Lab({**os.environ, "HATCHWAY_KEY_FILE": str(key)})
    yield running
    running.close()


@pytest.fixture(params=["process", "jail", "landlock", "container", "monty"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """What a job says about where it runs."""
    name = request.param
    if name == "container":
        return in_containers(request.getfixturevalue("private_engine"), tmp_path)
    found = availability("jail" if name == "landlock" else name)
    if found.state != "usable" or (name == "jail" and found.tier != "namespaces"):
        pytest.skip(f"{name}: {found.reason}")
    told: dict[str, Any] = {"sandbox": name, "folder": str(tmp_path)}
    if name == "landlock":
        told["python"] = open_python()
    return told


def in_containers(engine: str, folder: Path) -> dict[str, Any]:
    """Containers in the private engine, which are shown an empty folder so that files come back."""
    shown = folder / "shown"
    shown.mkdir(mode=0o755)
    return {"sandbox": "container", "folder": str(shown), "env": {"DOCKER_HOST": engine}}


def open_python() -> str | None:
    """For root the landlock tier runs code as a uid that must be let through to its interpreter; None: this one is."""
    if landlock.abi() < 6:
        pytest.skip(f"needs Landlock version 6, this kernel has {landlock.abi()}")
    real = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    if os.geteuid() != 0 or all(folder.stat().st_mode & 1 for folder in Path(real).parents):
        return None
    python = f"/usr/bin/python3.{sys.version_info.minor}"
    if not os.path.exists(python):
        pytest.skip(f"{real} is closed to other users, and there is no {python}")
    return python
