"""Display: what every command prints with. Text from code and tools is made safe by `hatchway.trace.text`."""

from __future__ import annotations

from rich.console import Console

from hatchway.trace.terminal import code_block, print_line
from hatchway.trace.text import call_source, call_text, cut, neutral, value_text

__all__ = [
    "call_source",
    "call_text",
    "code_block",
    "cut",
    "make_console",
    "neutral",
    "print_line",
    "value_text",
]


def make_console(*, stderr: bool = False) -> Console:
    """A console that takes text literally: nothing from a guest is ever read as markup."""
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)
