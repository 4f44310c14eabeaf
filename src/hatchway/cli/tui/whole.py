"""Whole: a long text over the whole screen, to scroll and search in; closed, the screen is as it was before."""

from __future__ import annotations

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.bindings import scroll
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.layout import BufferControl, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.output import Output
from prompt_toolkit.search import SearchDirection, start_search
from prompt_toolkit.widgets import SearchToolbar

WORDS = " ↑↓ PgUp PgDn scroll · / search · q or Esc closes"
MOVES = (
    (("up", "k"), scroll.scroll_one_line_up),
    (("down", "j", "enter"), scroll.scroll_one_line_down),
    (("pageup", "b", "c-b"), scroll.scroll_page_up),
    (("pagedown", " ", "c-f"), scroll.scroll_page_down),
)
"""The keys of every pager."""


class _Pager:
    """A text on the whole screen.

    Args:
        text: What is shown.
        at_end: It is opened at its end, where what came last stands.
    """

    def __init__(self, text: str, *, at_end: bool) -> None:
        self._search = SearchToolbar(forward_search_prompt="/", backward_search_prompt="?")
        place = len(text) if at_end else 0
        self._buffer = Buffer(read_only=True, document=Document(text, cursor_position=place))
        self._control = BufferControl(self._buffer, search_buffer_control=self._search.control)
        self._shown = Window(self._control, wrap_lines=True, always_hide_cursor=True)
        self.is_searching = Condition(lambda: self.app.layout.is_searching)
        self.app: Application[None]

    def layout(self) -> Layout:
        """The text, and a line about it."""
        bar = Window(FormattedTextControl(self._position), height=1)
        return Layout(HSplit([self._shown, self._search, bar]), focused_element=self._shown)

    def keys(self) -> KeyBindings:
        """What keys do."""
        keys, is_reading = KeyBindings(), ~self.is_searching
        for names, move in MOVES:
            for name in names:
                keys.add(name, filter=is_reading)(move)

        @keys.add("q", filter=is_reading)
        @keys.add("escape", filter=is_reading, eager=True)
        @keys.add("c-o", filter=is_reading)
        @keys.add("c-c")
        def close(event: KeyPressEvent) -> None:
            event.app.exit()

        @keys.add("/", filter=is_reading)
        def find(event: KeyPressEvent) -> None:
            start_search(self._control, SearchDirection.FORWARD)

        @keys.add("g", filter=is_reading)
        @keys.add("home", filter=is_reading)
        def first(event: KeyPressEvent) -> None:
            self._buffer.cursor_position = 0

        @keys.add("G", filter=is_reading)
        @keys.add("end", filter=is_reading)
        def last(event: KeyPressEvent) -> None:
            self._buffer.cursor_position = len(self._buffer.text)

        return keys

    def _position(self) -> StyleAndTextTuples:
        drawn, lines = self._shown.render_info, self._buffer.document.line_count
        line = lines if drawn is None else drawn.last_visible_line() + 1
        return [("reverse", f"{WORDS} · line {line} of {lines} ")]


def whole_view(text: str, keyboard: Input, output: Output, *, at_end: bool = True) -> Application[None]:
    """The view of a text, at its end or at its beginning."""
    pager = _Pager(text, at_end=at_end)
    pager.app = Application[None](
        layout=pager.layout(), key_bindings=pager.keys(), full_screen=True, input=keyboard, output=output
    )
    pager.app.ttimeoutlen = 0.05
    return pager.app
