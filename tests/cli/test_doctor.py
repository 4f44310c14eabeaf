"""`hatchway doctor` says what a launch would find."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from hatchway import __version__
from hatchway.sandboxes.registry import ROWS, available, choose_auto


def test_it_lists_every_sandbox_and_what_auto_takes(hatchway: Any) -> None:
    ran = hatchway("doctor")
    assert ran.returncode == 0
    assert [name for name in ROWS if f"\n{name} " not in ran.stdout] == []
    assert f'sandbox="auto" takes {choose_auto()}' in ran.stdout
    assert "UNSEALED" in ran.stdout


def test_the_json_object_says_what_the_probes_say(hatchway: Any) -> None:
    told = hatchway.json("doctor", "--json")
    assert (told["hatchway"], told["auto"]) == (__version__, choose_auto())
    found = available()
    assert {row["name"]: (row["state"], row["tier"]) for row in told["sandboxes"]} == {
        name: (seen.state, seen.tier) for name, seen in found.items()
    }
    assert {row["name"]: row["sealed"] for row in told["sandboxes"]}["process"] is False


def test_what_does_not_work_comes_with_reason_and_next_command(hatchway: Any) -> None:
    hatchway.file(
        "sitecustomize.py",
        "from hatchway.sandboxes import registry\n"
        "registry.ROWS = {'gone': registry.Row('no_such_module_x:Gone', 'gone')}\n",
    )
    ran = hatchway("doctor", PYTHONPATH=str(hatchway.cwd))
    assert ran.returncode == 1
    assert "– missing" in ran.stdout
    assert "\n      pip install 'hatchway[gone]'\n" in ran.stdout
    assert 'sandbox="auto" finds no sealed sandbox here and refuses' in ran.stdout


def test_the_container_works_where_there_is_an_engine_with_the_image(hatchway: Any, docker_engine: str) -> None:
    row = {row["name"]: row for row in hatchway.json("doctor", "--json")["sandboxes"]}["container"]
    assert (row["state"], row["tier"], row["sealed"]) == ("usable", "container", True)


def test_an_engine_that_is_down_comes_with_the_command_that_starts_it(hatchway: Any, tmp_path: Path) -> None:
    if shutil.which("docker") is None:
        pytest.skip("there is no docker client")
    told = hatchway.json("doctor", "--json", DOCKER_HOST=f"unix://{tmp_path}/nobody.sock")
    row = {row["name"]: row for row in told["sandboxes"]}["container"]
    assert (row["state"], row["tier"]) == ("installed_but_unusable", None)
    assert (row["reason"], row["hint"]) == ("docker cannot be used: it is not running", "sudo systemctl start docker")


def test_an_image_that_is_missing_comes_with_its_pull(hatchway: Any, docker_engine: str) -> None:
    hatchway.file(
        "sitecustomize.py",
        "from hatchway.sandboxes.container import policy, sandbox\n"
        "sandbox.ContainerSandbox.__init__.__defaults__ = ('nobody/nothing:1',)\n",
    )
    told = hatchway.json("doctor", "--json", PYTHONPATH=str(hatchway.cwd))
    row = {row["name"]: row for row in told["sandboxes"]}["container"]
    assert row["reason"] == "the image nobody/nothing:1 is not on this machine"
    assert row["hint"] == "docker pull nobody/nothing:1"


def test_without_a_client_the_container_is_missing(hatchway: Any) -> None:
    told = hatchway.json("doctor", "--json", PATH=str(hatchway.cwd))
    row = {row["name"]: row for row in told["sandboxes"]}["container"]
    assert (row["state"], row["reason"]) == ("missing", "there is no docker command on this machine")
