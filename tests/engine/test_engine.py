"""The engine of the tests: it runs containers, shows its own containers only, and is not the machine's."""

import subprocess
from pathlib import Path


def test_the_image_is_this_python_and_runs_as_anybody(docker_engine: str) -> None:
    command = ["docker", "run", "--rm", "--network=none", "--user=65534:65534", "python:3.12-slim"]
    code = "import os, ssl, sqlite3, sys; print(os.getuid(), sys.version_info >= (3, 11))"
    ran = subprocess.run([*command, "python3", "-c", code], capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("65534 True\n", "")


def test_it_lives_in_folders_of_its_own(docker_engine: str) -> None:
    home = Path(docker_engine.removeprefix("unix://")).parent
    asked = ["docker", "info", "--format", "{{.DockerRootDir}}"]
    assert subprocess.run(asked, capture_output=True, text=True).stdout == f"{home}/data\n"
    assert (home / "engine.pid").exists()
