"""Words by lines: `/help`, `/skill`, `/model` and `/tools` where a terminal knows only lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hatchway import __version__
from hatchway.agent.human import HUMAN
from hatchway.cli.agent_setup import Setup, load_model
from hatchway.cli.display import make_console, neutral
from hatchway.cli.tui.words import ASKED, WORDS, Words
from hatchway.core.errors import InvalidSetting
from hatchway.trace.blocks import Block, Line, Part
from hatchway.trace.terminal import Painter

if TYPE_CHECKING:
    from hatchway.agent.agent import Agent

KEYS = """\
Enter      send
Ctrl+C     cancel the turn; what there is stays
q Enter    quit
"""
MORE = """
Each with Enter after it; on the same line may follow what it asks for:
n use the other account · a send(to=b*)
"""
HELLO = f"hatchway {__version__} · /help says what can be typed, q leaves"


class LineTeller:
    """Prints what words have to say."""

    def __init__(self) -> None:
        self._painter = Painter(make_console(stderr=True))

    def note(self, text: str, *, is_bad: bool = False) -> None:
        """A line of our own."""
        self.show([Line(mark="✗" if is_bad else "▣", tone="bad" if is_bad else "dim", parts=[Part(neutral(text))])])

    def show(self, blocks: Sequence[Block]) -> None:
        """Paint blocks."""
        for block in blocks:
            self._painter.paint(block)


def line_words(agent: Agent, setup: Setup) -> Words:
    """The words of a conversation by lines."""

    def take_model(name: str) -> None:
        if HUMAN in (name, setup.choice.model):
            raise InvalidSetting("by lines, that is chosen at the start", hint=f"hatchway -c --model {name}")
        agent.model = load_model(name, setup.choice)

    return Words(LineTeller(), agent, setup.config.skills_metadata, take_model, help_text=KEYS + WORDS + ASKED + MORE)
