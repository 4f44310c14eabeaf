"""The jail's tests, and those of files, again as an ordinary user: no cgroup, one uid in the map, no power."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NOBODY = 65534

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

if os.geteuid() != 0:
    pytest.skip("these tests run as an ordinary user already", allow_module_level=True)

SUITES = [
    "jail",
    "jail_files",
    "jail_limits",
    "jail_ends",
    "jail_landlock",
    "jail_paths",
    "jail_commands",
    "jail_packages",
    "jail_displays",
    "jail_ipython",
    "jail_network",
    "jail_network_attacks",
    "files_everywhere",
]


@pytest.mark.parametrize("name", SUITES)
def test_as_an_ordinary_user(name: str, open_path: Path) -> None:
    open_path.chmod(0o777)
    real = os.path.realpath(getattr(sys, "_base_executable", sys.executable))  # not a copy in a venv
    python = sys.executable
    if not all(p.stat().st_mode & 1 for p in Path(real).parents):
        python = f"/usr/bin/python3.{sys.version_info.minor}"
        if not os.path.exists(python):
            pytest.skip(f"{real} is closed to other users, and there is no {python}")
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", f"{HERE}/test_{name}.py"]
    path = os.pathsep.join([str(HERE.parents[1] / "src"), sysconfig.get_paths()["purelib"]])
    done = subprocess.run(
        command,
        cwd=HERE.parents[1],
        env={
            "PATH": os.defpath,
            "PYTHONPATH": path,
            "PYTHONDONTWRITEBYTECODE": "1",
            "HATCHWAY_KEY_FILE": f"{open_path}/key",
        },
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:]
