"""First run: no model was found. One screen says what can be done, and every choice leads somewhere."""

from __future__ import annotations

import re
import textwrap
from importlib.resources import files
from typing import Literal, Protocol

from hatchway.cli.tui.screen import Screen
from hatchway.trace.text import neutral

Choice = Literal["demo", "human", "quit"]
CTRL_D = "\x04"
MOST_COLUMNS = 79
QUESTION = "[d] demo  [h] write the code yourself  [k] how to set a key  [q] quit"


async def first_run(screen: Screen, why: str) -> Choice:
    """What the person wants to do without a model; Esc, Ctrl+C and Ctrl+D leave."""
    screen.on_cancel = lambda: screen.press("q")
    try:
        return await chosen(screen, why, screen.width)
    finally:
        screen.on_cancel = lambda: None


class Fields(Protocol):
    """Where somebody can be asked: a whole screen, or a terminal that knows only lines."""

    async def choose(self, question: str, keys: str) -> str:
        """The key the person pressed."""
        ...

    def print(self, text: str) -> None:
        """A text that stays."""
        ...


async def chosen(fields: Fields, why: str, columns: int) -> Choice:
    """The same where a person left in another way."""
    fields.print(_text("no_model.txt", columns, why=f"There is no model yet: {neutral(why)}."))
    while True:
        match await fields.choose(QUESTION, f"dhkq{CTRL_D}"):
            case "d":
                return "demo"
            case "h":
                return "human"
            case "k":
                fields.print(_text("keys.txt", columns))
            case _:
                return "quit"


def _text(name: str, columns: int, **given: str) -> str:
    lines = (files("hatchway.cli.tui") / name).read_text(encoding="utf-8").splitlines()
    columns = max(min(columns, MOST_COLUMNS) - 1, 2)
    return "".join(f"{_wrapped(line.format(**given) if given else line, columns)}\n" for line in lines)


def _wrapped(line: str, columns: int) -> str:
    hang = re.match(r" *(?:[a-z]  )?", line)
    indent = "" if hang is None else " " * hang.end()
    return textwrap.fill(line, columns, subsequent_indent=indent, break_on_hyphens=False)
