"""The first screen without a model, at any width."""

import asyncio

from prompt_toolkit.utils import get_cwidth

from hatchway.cli.tui.first_run import chosen


class Pressing:
    """Presses keys, and keeps what is shown."""

    def __init__(self, keys: str) -> None:
        self.keys, self.shown = list(keys), ""

    async def choose(self, question: str, keys: str) -> str:
        return self.keys.pop(0)

    def print(self, text: str) -> None:
        self.shown += text


def test_lines_break_between_words_in_a_narrow_terminal() -> None:
    person = Pressing("kq")
    assert asyncio.run(chosen(person, "no key is set", 40)) == "quit"
    lines = person.shown.splitlines()
    assert max(map(get_cwidth, lines)) < 40
    assert lines[3:7] == [
        "  d  See the demo: the model is",
        "     scripted, sandbox, tools and",
        "     approval are real. No key, no",
        "     network.",
    ]
    assert "  export ANTHROPIC_API_KEY=…" in lines


def test_a_wide_terminal_has_lines_that_can_be_read() -> None:
    person = Pressing("h")
    assert asyncio.run(chosen(person, "no key is set", 200)) == "human"
    assert 70 < max(map(get_cwidth, person.shown.splitlines())) < 80
