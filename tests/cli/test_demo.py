"""`hatchway demo`: the tour shows what it promises, with a terminal and without."""

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from hatchway import CodeMode
from hatchway.cli.command_name import command_name
from hatchway.cli.demo.tools import TOOLS
from hatchway.cli.demo.tour import story


def test_yes_shows_everything(hatchway: Any) -> None:
    ran = hatchway("demo", "--yes")
    assert (ran.stderr, ran.returncode) == ("", 0)
    assert len(re.findall(r"✓ forecast", ran.stdout)) == 4
    assert "✗ forecast(city='Lisbonne') → LookupError: no weather for 'Lisbonne', did you mean Lisbon?" in ran.stdout
    assert "⊘ pay_deposit(euros=20) → money stays with people" in ran.stdout
    assert "= 'booked: 4 seats in Lisbon on Saturday'" in ran.stdout


async def _first_action() -> list[str]:
    async with CodeMode("monty", tools=TOOLS) as mode:
        return [type(event).__name__ async for event in mode.stream(story()[1][0].code or "")]


def test_the_forecasts_are_asked_for_at_once() -> None:
    kinds = asyncio.run(_first_action())
    first_answer = min(kinds.index("ToolOutput"), kinds.index("CallFailed"))
    assert kinds[:first_answer].count("CallStarted") == 4


def test_it_ends_with_three_commands_that_exist(hatchway: Any) -> None:
    steps = hatchway("demo", "--yes").stdout.partition("Try next:\n")[2].splitlines()
    assert [re.findall(r"hatchway (\w+)", step) for step in steps] == [["doctor"], ["exec"], ["conformance"]]


def test_without_a_terminal_the_booking_is_refused_and_the_way_out_told(hatchway: Any) -> None:
    ran = hatchway("demo")
    assert ran.returncode == 0
    assert "not booked: " in ran.stdout
    assert "There is no terminal to ask at, so the booking was refused: --yes allows it." in ran.stdout


@pytest.mark.parametrize(
    ("typed", "shown"), [("\n", "= 'booked: 4 seats in Lisbon on Saturday'"), ("n I prefer Quito\n", "I prefer Quito")]
)
def test_a_person_is_asked(at_terminal: Any, typed: str, shown: str) -> None:
    screen = at_terminal("demo")
    screen.wait_for("›")
    assert "book_table asks for approval" in screen.text
    assert "in the shade, please" in screen.text
    screen.type(typed)
    assert screen.end() == 0
    assert shown in screen.text.partition("›")[2]


def test_the_unsealed_sandbox_serves_as_well(hatchway: Any) -> None:
    ran = hatchway("demo", "--yes", "--sandbox", "process")
    assert ran.returncode == 0
    assert "sandbox process, wall: process" in ran.stdout
    assert "= 'booked: 4 seats in Lisbon on Saturday'" in ran.stdout


def test_the_name_of_the_command_is_one_that_works() -> None:
    assert command_name().endswith("hatchway")


def test_what_uvx_runs_is_called_by_uvx_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment is on the path of this one process only."""
    (tmp_path / "CACHEDIR.TAG").touch()
    monkeypatch.setenv("UV", "/usr/bin/uv")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    repo = Path(__file__).parents[2]
    monkeypatch.chdir(repo)
    assert command_name() == "uvx --from . hatchway"  # as `./dev` installed it: from this folder
    monkeypatch.delenv("UV")
    assert not command_name().startswith("uvx")
