"""Last lines: what is drawn at the bottom of the terminal: what streams in, a question or a field, the status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import BufferControl, ConditionalContainer, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import BeforeInput, TabsProcessor
from prompt_toolkit.styles import Style

from hatchway.cli.tui.asked import Choosing, Typing
from hatchway.cli.tui.wrapping import wrapped

if TYPE_CHECKING:
    from hatchway.cli.tui.screen import Screen

LIVE_LINES = 6
"""How many lines of what streams in are shown at least before they are whole; on a high terminal half of it."""
FIELD_LINES = 12
"""How high a field grows."""
STYLE = Style.from_dict({"status": "dim", "question": "bold", "label": "bold", "live": "", "ahead": "dim"})
FIELD_HINT, LINES_HINT = "Enter takes it · Esc goes back", "Ctrl+S takes it · Esc goes back"


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
            BufferControl(
                screen.buffer,
                input_processors=[TabsProcessor(char1=" ", char2=" "), BeforeInput(self._label, "class:label")],
            ),
            height=Dimension(min=1, max=FIELD_LINES),
            wrap_lines=True,
            get_line_prefix=self._line_prefix,
            dont_extend_height=True,  # as high as what is typed is when it is wrapped
        )
        status = Window(FormattedTextControl(self._status_text), height=1, style="class:status")
        windows = [
            ConditionalContainer(live, Condition(lambda: bool(screen.live))),
            ConditionalContainer(Window(height=1), Condition(self._is_at_prompt)),
            ConditionalContainer(field, Condition(lambda: isinstance(screen.waits, Typing))),
            ConditionalContainer(self.question, Condition(lambda: not isinstance(screen.waits, Typing))),
            CompletionsMenu(max_height=8),
            status,
        ]
        return Layout(HSplit(windows), focused_element=self.question)

    def _is_at_prompt(self) -> bool:
        waits = self._screen.waits
        return isinstance(waits, Typing) and waits.is_prompt and not self._screen.live

    def _label(self) -> str:
        waits = self._screen.waits
        if not isinstance(waits, Typing):
            return ""
        return self._screen.label if waits.is_prompt else waits.label

    def _line_prefix(self, line: int, wrapped: int) -> StyleAndTextTuples:
        return [("", " " * len(self._label()) if line or wrapped else "")]

    def _question_text(self) -> StyleAndTextTuples:
        screen = self._screen
        if isinstance(screen.waits, Choosing):
            return [("class:question", "\n".join(wrapped(screen.waits.question, screen.width - 1)))]
        return [("class:ahead", screen.ahead and f"{screen.label}{screen.ahead}".splitlines()[-1])]

    def _status_text(self) -> StyleAndTextTuples:
        screen, hint = self._screen, ""
        if isinstance(screen.waits, Typing) and not screen.waits.is_prompt:
            hint = LINES_HINT if screen.waits.many_lines else FIELD_HINT
        return [("", screen.status(max(screen.width - 1, 1), hint))]

    def _live_text(self) -> str:
        screen = self._screen
        most = max(LIVE_LINES, screen.height // 2)
        lines = [piece for line in screen.live.splitlines()[-most:] for piece in wrapped(line, screen.width - 1)]
        return "\n".join(lines[-most:])
