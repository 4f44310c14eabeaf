"""First run: no model was found. One screen says what can be done, and every choice leads somewhere."""

from __future__ import annotations

import textwrap
from importlib.resources import files
from typing import Literal

from hatchway.cli.tui.screen import Screen
from hatchway.trace.text import neutral

Choice = Literal["demo", "human", "quit"]
CTRL_D = "\x04"
QUESTION = "[d] demo  [h] write the code yourself  [k] how to set a key  [q] quit"


async def first_run(screen: Screen, why: str) -> Choice:
    """What the person wants to do without a model; Esc, Ctrl+C and Ctrl+D leave."""
    screen.on_cancel = lambda: screen.press("q")
    try:
        return await _chosen(screen, why)
    finally:
        screen.on_cancel = lambda: None


async def _chosen(screen: Screen, why: str) -> Choice:
    why = textwrap.fill(f"There is no model yet: {neutral(why)}.", min(screen.width, 79) - 1)
    screen.print(_text("no_model.txt").format(why=why))
    while True:
        match await screen.choose(QUESTION, f"dhkq{CTRL_D}"):
            case "d":
                return "demo"
            case "h":
                return "human"
            case "k":
                screen.print(_text("keys.txt"))
            case _:
                return "quit"


def _text(name: str) -> str:
    return (files("hatchway.cli.tui") / name).read_text(encoding="utf-8")
