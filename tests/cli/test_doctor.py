"""`hatchway doctor` says what a launch would find."""

from typing import Any

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
