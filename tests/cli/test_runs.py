"""`hatchway runs`: what a journal holds, for a person and for a program."""

import sqlite3
from typing import Any

import pytest


@pytest.fixture
def three(stories: Any) -> Any:
    """A run that waits, one that failed, one that is done."""
    stories.paused("aaaa1111" * 4, "hi", code="\n\n  send('hi')\nmore()")
    stories.failed("bbbb2222" * 4)
    stories.ended("cccc3333" * 4, code="print('\x1b[2J')")
    return stories


def test_newest_first_one_line_each(hatchway: Any, three: Any) -> None:
    ran = hatchway("runs")
    lines = [line.split() for line in ran.stdout.splitlines()]
    assert [line[:2] for line in lines] == [["cccc3333", "done"], ["bbbb2222", "failed"], ["aaaa1111", "paused"]]
    assert ran.stdout.splitlines()[0].endswith("ago  monty      print('\\x1b[2J')")
    assert lines[2][-1] == "send('hi')"
    assert (ran.stderr, ran.returncode) == ("", 0)


def test_the_list_as_json(hatchway: Any, three: Any) -> None:
    told = hatchway.json("runs", "--json")
    assert [(run["run_id"], run["state"]) for run in told] == [
        ("cccc3333" * 4, "done"),
        ("bbbb2222" * 4, "failed"),
        ("aaaa1111" * 4, "paused"),
    ]
    assert told[0]["code"] == "print('\x1b[2J')"
    assert (told[0]["sandbox"], told[0]["tier"], told[0]["epoch"], told[0]["error"]) == ("monty", "language", 1, None)
    assert told[0]["started_at"] <= told[0]["ended_at"]
    assert told[1]["error"] == {
        "type": "CodeRuntimeError", "message": "ZeroDivisionError: division by zero", "hint": "",
    }  # fmt: skip
    (waiting,) = told[2]["calls"]
    assert {key: waiting[key] for key in ("call_id", "tool", "args", "state")} == {
        "call_id": "1.1", "tool": "send", "args": {"text": "hi"}, "state": "pending",
    }  # fmt: skip


def test_by_state_and_number(hatchway: Any, three: Any) -> None:
    assert [run["state"] for run in hatchway.json("runs", "--json", "--state", "paused")] == ["paused"]
    assert [run["state"] for run in hatchway.json("runs", "--json", "--limit", "2")] == ["done", "failed"]
    assert hatchway("runs", "--state", "running").stdout == "no such run\n"
    assert hatchway("runs", "--state", "sleeping").returncode == 2


def test_a_run_whose_process_died_is_interrupted(hatchway: Any, stories: Any) -> None:
    stories.begin("dddd4444" * 4)
    assert hatchway.json("runs", "--json")[0]["state"] == "running"
    stories.journal.close()
    assert hatchway.json("runs", "--json")[0]["state"] == "interrupted"


def test_a_journal_elsewhere_by_option_or_variable(hatchway: Any, three: Any) -> None:
    (hatchway.cwd / ".hatchway").rename(hatchway.cwd / "moved")
    assert len(hatchway.json("runs", "--json", "--journal", "moved/journal.db")) == 3
    assert len(hatchway.json("runs", "--json", "--journal", "sqlite:///moved/journal.db")) == 3
    assert len(hatchway.json("runs", "--json", HATCHWAY_JOURNAL="moved/journal.db")) == 3


def test_a_list_at_a_terminal_fits_and_says_what_next(at_terminal: Any, three: Any) -> None:
    three.ended("eeee5555" * 4, code="x = '" + "y" * 500 + "'")
    screen = at_terminal("runs")
    assert screen.end() == 0
    assert max(map(len, screen.text.splitlines())) <= 100
    assert "decide about calls that wait: hatchway approve RUN" in screen.text


@pytest.mark.parametrize("command", ["runs", "show aaaa", "approve aaaa", "deny aaaa", "prune --keep 1"])
def test_a_missing_journal_is_one_message_and_is_not_made(hatchway: Any, command: str) -> None:
    ran = hatchway(*command.split())
    assert (ran.stdout, ran.returncode) == ("", 2)
    assert ran.stderr == (
        "Error: there is no journal .hatchway/journal.db\n"
        "`hatchway exec FILE` makes one; one that is elsewhere is named by --journal PATH\n"
    )
    assert list(hatchway.cwd.iterdir()) == []


def test_what_is_no_journal_or_a_newer_one_is_refused(hatchway: Any, three: Any) -> None:
    hatchway.file("text.db", "this is no database, but it is long enough to be taken for one" * 20)
    refused = hatchway("runs", "--journal", "text.db")
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (
        2, "Error: the journal text.db cannot be opened: file is not a database",
    )  # fmt: skip
    three.journal.close()
    with sqlite3.connect(hatchway.cwd / ".hatchway" / "journal.db") as db:
        db.execute("UPDATE meta SET value = '99' WHERE name = 'version'")
    db.close()
    newer = hatchway("runs")
    assert newer.returncode == 2
    assert newer.stderr.startswith("Error: the journal has version 99, this Hatchway knows up to ")
    assert newer.stderr.endswith("pip install -U hatchway\n")


def test_a_url_of_something_else_is_refused(hatchway: Any) -> None:
    ran = hatchway("runs", "--journal", "mysql://root:secret@localhost/x")
    assert ran.returncode == 2
    assert "not mysql://" in ran.stderr
    assert "secret" not in ran.stderr
