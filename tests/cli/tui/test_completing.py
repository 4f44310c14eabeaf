"""Tab at the prompt."""

from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from hatchway.cli.tui.completing import COMMANDS, MOST, PromptCompleter


@pytest.fixture
def completer(tmp_path: Path) -> PromptCompleter:
    (tmp_path / "src").mkdir()
    for name in ("src/main.py", "shot one.png", "readme.md", ".env"):
        (tmp_path / name).touch()
    return PromptCompleter(tmp_path, {"/skill": lambda: [("plan", "plans")]})


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("look at @", ["readme.md", "shot\\ one.png", "src/"]),
        ("look at @s", ["shot\\ one.png", "src/"]),
        ("@src/m", ["main.py"]),
        ("@.e", [".env"]),
        ("@gone/", []),
        ("mail a@b", []),
        ("/", list(COMMANDS)),
        ("/skill p", ["plan"]),
        ("/help x", []),
        ("plain /", []),
        ("", []),
    ],
)
def test_what_is_offered(completer: PromptCompleter, typed: str, offered: list[str]) -> None:
    found = completer.get_completions(Document(typed), CompleteEvent())
    assert [each.text for each in found] == offered


def test_a_folder_of_very_many_files_offers_some(completer: PromptCompleter, tmp_path: Path) -> None:
    for number in range(MOST + 50):
        (tmp_path / f"f{number}").touch()
    assert len(list(completer.get_completions(Document("@f"), CompleteEvent()))) == MOST
