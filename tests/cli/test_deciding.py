"""`hatchway approve` and `hatchway deny`: what is decided is in the journal, and only what can be decided."""

import sqlite3
from typing import Any

import pytest

from hatchway.core.decisions import Allow, Deny, Edit

RUN = "cccc3333" * 4


def decided(stories: Any) -> dict[str, Any]:
    """The decision about each call that has one."""
    calls = stories.journal.history(RUN).calls
    return {call_id: call.decision for call_id, call in calls.items() if call.decision is not None}


def test_all_at_once(hatchway: Any, stories: Any) -> None:
    stories.paused(RUN, "a", "b")
    ran = hatchway("approve", "cccc")
    assert (ran.stdout, ran.returncode) == ("", 0)
    assert ran.stderr == (
        "◆ send(text='a') allowed by you  call 1.1\n"
        "◆ send(text='b') allowed by you  call 1.2\n"
        "every call is decided: hatchway resume cccc3333\n"
    )
    assert decided(stories) == {"1.1": Allow(), "1.2": Allow()}


def test_some_and_then_the_rest(hatchway: Any, stories: Any) -> None:
    stories.paused(RUN, "a", "b", "c")
    assert "2 calls wait for a decision" in hatchway("deny", RUN, "1.2", "--reason", "not b").stderr
    assert decided(stories) == {"1.2": Deny("not b")}
    assert hatchway("approve", RUN).returncode == 0
    assert decided(stories) == {"1.1": Allow(), "1.2": Deny("not b"), "1.3": Allow()}


def test_a_decision_can_be_changed_until_the_run_goes_on(hatchway: Any, stories: Any) -> None:
    stories.paused(RUN, "a")
    hatchway("approve", RUN)
    again = hatchway("approve", RUN)
    assert again.returncode == 2
    assert again.stderr == "Error: every pending call of run cccc3333 is decided\nhatchway resume cccc3333\n"
    assert hatchway("deny", RUN, "1.1").returncode == 0
    assert decided(stories) == {"1.1": Deny("the person said no")}


@pytest.mark.parametrize(
    ("edit", "value"),
    [("text=hello", "hello"), ("text=5", 5), ('text="5"', "5"), ("text=[1]", [1]), ("text=a=b", "a=b")],
)
def test_other_arguments(hatchway: Any, stories: Any, edit: str, value: Any) -> None:
    stories.paused(RUN, "a")
    assert hatchway("approve", RUN, "1.1", "--edit", edit, "--edit", "to=bob").returncode == 0
    assert decided(stories) == {"1.1": Edit({"text": value, "to": "bob"})}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["approve", RUN, "9.9"], "Error: 9.9: no such pending call of run cccc3333; pending: 1.1, 1.2"),
        (["deny", RUN, "9.9"], "Error: 9.9: no such pending call of run cccc3333; pending: 1.1, 1.2"),
        (["approve", RUN, "--edit", "text=x"], "Error: --edit changes one call: name one of 1.1, 1.2"),
        (["approve", RUN, "1.1", "--edit", "text"], "Error: --edit takes NAME=VALUE, not 'text'"),
    ],
)
def test_what_cannot_be_decided_is_refused_and_nothing_is_stored(
    hatchway: Any, stories: Any, args: list[str], said: str
) -> None:
    stories.paused(RUN, "a", "b")
    ran = hatchway(*args)
    assert ran.returncode == 2
    assert said in ran.stderr.splitlines()
    assert decided(stories) == {}


def test_an_argument_the_journal_hides_must_be_given(hatchway: Any, stories: Any) -> None:
    stories.paused(RUN, "[redacted]")
    ran = hatchway("approve", RUN, "--edit", "to=bob")
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1] == "Error: the journal does not know text: give it with --edit too"


def test_a_run_that_waits_for_nothing(hatchway: Any, stories: Any) -> None:
    stories.ended(RUN)
    ran = hatchway("approve", RUN)
    assert (ran.returncode, ran.stderr) == (
        2, "Error: no call of run cccc3333 waits: it is done\nhatchway show cccc3333\n",
    )  # fmt: skip


def test_a_run_that_somebody_drives_is_left_alone(hatchway: Any, stories: Any) -> None:
    stories.paused(RUN, "a")
    stories.journal.take(RUN)
    ran = hatchway("approve", RUN)
    assert ran.returncode == 8
    assert ran.stderr.splitlines()[0] == f"Error: run {RUN} is being driven by somebody else"
    assert decided(stories) == {}


def test_what_a_call_holds_cannot_drive_the_terminal(hatchway: Any, stories: Any) -> None:
    stories.paused(RUN, "\x1b[2J\u202e" + "x" * 1_000_000)
    ran = hatchway("approve", RUN)
    assert "send(text='\\x1b[2J\\u202exxx" in ran.stderr
    assert len(ran.stderr) < 3000


@pytest.mark.slow
def test_a_journal_that_another_program_locks_is_said_to_be_locked(hatchway: Any, stories: Any) -> None:
    stories.paused(RUN, "a")
    db = sqlite3.connect(hatchway.cwd / ".hatchway" / "journal.db", isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    assert hatchway("show", RUN).returncode == 0
    ran = hatchway("approve", RUN)
    db.close()
    assert ran.returncode == 2
    assert "is held by another program, for more than 10 s" in ran.stderr.splitlines()[0]
    assert "Traceback" not in ran.stderr
