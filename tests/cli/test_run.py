"""`hatchway run TASK` as a user or a script runs it, with a scripted model and a real sandbox."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

SCRIPTED = Path(__file__).parent / "tui" / "scripted.py"
SHOP = Path(__file__).parent / "tui" / "shop.py"
MODEL = ["--model", "scripted.py:model", "--tools", "shop.py"]


@pytest.fixture
def workspace(hatchway: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model and a tool."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for file in (SCRIPTED, SHOP):
        shutil.copy(file, hatchway.cwd)
    return hatchway.cwd


def test_the_answer_is_on_stdout_and_all_else_on_stderr(hatchway: Any, workspace: Path) -> None:
    ran = hatchway("run", *MODEL, "--yes", "--record", "code: print(send('ada'))")
    assert (ran.returncode, ran.stdout) == (0, "It gave: `sent to ada: hi`\n")
    assert "print(send('ada'))" in ran.stderr
    assert "✓ send(to='ada') → 'sent to ada: hi'" in ran.stderr
    assert "recorded output/conversation.svg" in ran.stderr
    assert (workspace / "effects.txt").read_text(encoding="utf-8") == "ada "
    assert "sent to ada" in (workspace / "output" / "conversation.html").read_text(encoding="utf-8")

    again = hatchway("run", *MODEL, "-c", stdin="from a pipe")
    assert again.returncode == 0
    assert "> from a pipe" in again.stdout
    [row] = hatchway.json("conversations", "--json")
    assert (row["number"], row["state"], row["turns"]) == (1, "idle", 2)
    assert row["title"].startswith("code: print(send(")
    assert hatchway("conversations").stdout.split()[:2] == ["1", "idle"]


def test_every_event_is_a_line_and_what_nobody_approves_ends_the_turn(hatchway: Any, workspace: Path) -> None:
    ran = hatchway("run", *MODEL, "--json", "code: send('ada')")
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 4
    assert [event["event"] for event in events if not event["event"].endswith("Chunk")] == [
        "Response", "ApprovalRequest", "Ended",
    ]  # fmt: skip
    assert events[-2]["tool_args"] == {"code": "send('ada')"}
    assert events[-1]["state"] == "not_approved"
    assert events[-1]["error"]["message"] == (
        "the call of execute_code needs approval: run it in a terminal to be asked, or with --yes to allow every call"
    )
    assert not (workspace / "effects.txt").exists()


def test_a_person_at_a_terminal_is_asked(at_terminal: Any, workspace: Path) -> None:
    screen = at_terminal("run", *MODEL, "code: send('ada')")
    screen.wait_for("allow? [Enter/y] yes  [n reason] no")
    screen.type("n use bob\n")
    screen.wait_for("It gave: `The user rejected this code action: use bob")
    assert screen.end() == 0
    assert not (workspace / "effects.txt").exists()


def test_a_terminal_that_knows_only_lines_is_talked_with_by_lines(at_terminal: Any, workspace: Path) -> None:
    screen = at_terminal(*MODEL)
    screen.wait_for("› ")
    screen.type("code: print(send('ada'))\n")
    for number in (1, 2):
        screen.wait_for("allow? [Enter/y] yes  [n reason] no", number)
        screen.type("y\n")
    screen.wait_for("It gave: `sent to ada: hi`")
    screen.wait_for("› ", 4)
    screen.type("q\n")
    assert screen.end() == 0
    assert "\x1b" not in screen.text


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["run", "hi"], "Error: there is no model: no model is named"),
        (["run", "--model", "scripted.py:nothing", "hi"], "Error: scripted.py has no model named 'nothing'"),
        (
            ["run", *MODEL, "--session", "7", "hi"],
            "Error: '7': there is no such conversation\nhatchway conversations\n",
        ),
    ],
)
def test_what_cannot_be_had_is_said(hatchway: Any, workspace: Path, args: list[str], message: str) -> None:
    ran = hatchway(*args)
    assert ran.returncode == 2
    assert ran.stderr.startswith(message)
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["run", "-c", "--session", "1", "hi"], "-c is the newest conversation, --session is a chosen one"),
        ([], "there is no terminal and no task: hatchway run TASK"),
        (["--yes", "runs"], "a command stands before its options, and a task is: hatchway run 'runs'"),
        (["run", "--execution-timeout", "0", "hi"], "0.0 is not in the range x>0"),
    ],
)
def test_wrong_words_are_usage_errors(hatchway: Any, args: list[str], message: str) -> None:
    ran = hatchway(*args)
    assert ran.returncode == 2
    assert message in ran.stderr


def test_init_makes_the_folder_once_and_no_conversation_is_none(hatchway: Any) -> None:
    first, second = hatchway("init"), hatchway("init")
    assert (first.returncode, second.returncode) == (0, 0)
    assert "made .hatchway/config.json\n" in first.stdout
    assert second.stdout == "Everything was there already.\n"
    assert hatchway.json("conversations", "--json") == []
