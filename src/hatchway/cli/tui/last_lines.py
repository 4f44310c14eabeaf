"""Last lines: what is drawn at the bottom of the terminal: what streams in, a question or a field, the status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import BufferControl, ConditionalContainer, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.styles import Style

from hatchway.cli.tui.asked import Choosing, Typing

if TYPE_CHECKING:
    from hatchway.cli.tui.screen import Screen

LIVE_LINES = 6
"""How many lines of what streams in are shown before they are whole."""
FIELD_LINES = 12
"""How high a field grows."""
STYLE = Style.from_dict({"status": "dim", "question": "bold", "label": "bold", "live": ""})


class LastLines:
    """Draws a screen as it is at the moment.

    Args:
        screen: What is drawn.
    """

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self.question = Window(
            FormattedTextControl(self._question_text, focusable=True, show_cursor=False),
            wrap_lines=True,
            dont_extend_height=True,
        )
        """Has the keys while nothing is typed."""

    def layout(self) -> Layout:
        """The windows, one below the other."""
        screen = self._screen
        live = Window(FormattedTextControl(self._live_text), dont_extend_height=True, style="class:live")
        field = Window(
            BufferControl(screen.buffer, input_processors=[BeforeInput(self._label, "class:label")]),
            height=lambda: min(max(screen.buffer.document.line_count, 1), FIELD_LINES),
            wrap_lines=True,
            get_line_prefix=self._line_prefix,
        )
        status = Window(FormattedTextControl(self._status_text), height=1, style="class:status")
        windows = [
            ConditionalContainer(live, Condition(lambda: bool(screen.live))),
            ConditionalContainer(field, Condition(lambda: isinstance(screen.waits, Typing))),
            ConditionalContainer(self.question, Condition(lambda: not isinstance(screen.waits, Typing))),
            CompletionsMenu(max_height=8),
            status,
        ]
        return Layout(HSplit(windows), focused_element=self.question)

    def _label(self) -> str:
        waits = self._screen.waits
        if not isinstance(waits, Typing):
            return ""
        return self._screen.label if waits.is_prompt else waits.label

    def _line_prefix(self, line: int, wrapped: int) -> StyleAndTextTuples:
        return [("", " " * len(self._label()) if line or wrapped else "")]

    def _question_text(self) -> StyleAndTextTuples:
        waits = self._screen.waits
        return [("class:question", waits.question if isinstance(waits, Choosing) else "")]

    def _status_text(self) -> StyleAndTextTuples:
        return [("", self._screen.status()[: max(self._screen.width - 1, 1)])]

    def _live_text(self) -> str:
        room = max(self._screen.width - 1, 1)
        lines = self._screen.live[-room * LIVE_LINES :].splitlines()[-LIVE_LINES:]
        return "\n".join(line[-room:] for line in lines)
