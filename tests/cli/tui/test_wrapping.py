"""Lines that fit, and a status line that keeps what matters."""

import pytest
from prompt_toolkit.utils import get_cwidth

from hatchway.cli.tui.approving import CHOICES
from hatchway.cli.tui.status import Status
from hatchway.cli.tui.wrapping import wrapped


@pytest.mark.parametrize("columns", range(24, 100))
def test_a_key_stays_with_what_it_does(columns: int) -> None:
    lines = wrapped(f"Allow edit_file? (2 more after it) {CHOICES}", columns)
    assert all(len(line) <= columns for line in lines)
    assert " ".join(lines) == f"Allow edit_file? (2 more after it) {CHOICES}"
    assert not any(line.endswith("]") for line in lines)


def test_what_is_wider_than_a_line_is_broken_and_wide_characters_count_twice() -> None:
    assert wrapped("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]
    lines = wrapped("緑茶" * 20 + " and more", 11)
    assert all(get_cwidth(line) <= 11 for line in lines)
    assert "".join(lines).replace(" ", "") == "緑茶" * 20 + "andmore"
    assert wrapped("", 10) == [""]
    assert wrapped("a\tb", 10) == ["a   b"]


def test_a_narrow_status_line_says_what_goes_on_and_what_can_be_done() -> None:
    status = Status(model="vendor:model", sandbox="jail", doing="running", since=1.0, tokens=1_234, cost=0.05)
    assert status.line().endswith(" s · vendor:model · jail · 1.2k tokens · $0.0500 · Esc cancels")
    for columns in (40, 50, 60, 70):
        line = status.line(columns)
        assert len(line) <= columns
        assert "running" in line
        assert line.endswith("Esc cancels")
    assert status.line(hint="Esc goes back").endswith("Esc goes back")
    assert Status(doing="", model="m").line() == "m · /help"
