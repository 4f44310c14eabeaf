"""Whole: a long text over the whole screen, to scroll and search in; closed, the screen is as it was before."""

from __future__ import annotations

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, merge_key_bindings
from prompt_toolkit.key_binding.bindings.page_navigation import load_emacs_page_navigation_bindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.layout import BufferControl, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.output import Output
from prompt_toolkit.widgets import SearchToolbar

WORDS = " ↑↓ PgUp PgDn scroll · / search · q or Esc closes"


def whole_view(text: str, keyboard: Input, output: Output) -> Application[None]:
    """The view of a text, at its end."""
    search = SearchToolbar()
    buffer = Buffer(read_only=True, document=Document(text, cursor_position=len(text)))
    shown = Window(BufferControl(buffer, search_buffer_control=search.control), wrap_lines=True)

    def position() -> StyleAndTextTuples:
        line, lines = buffer.document.cursor_position_row + 1, buffer.document.line_count
        return [("reverse", f"{WORDS} · line {line} of {lines} ")]

    bar = Window(FormattedTextControl(position), height=1)
    is_searching = Condition(lambda: app.layout.is_searching)
    keys = KeyBindings()

    @keys.add("q", filter=~is_searching)
    @keys.add("escape", filter=~is_searching, eager=True)
    @keys.add("c-o", filter=~is_searching)
    @keys.add("c-c")
    def close(event: KeyPressEvent) -> None:
        event.app.exit()

    @keys.add("/", filter=~is_searching)
    def find(event: KeyPressEvent) -> None:
        from prompt_toolkit.search import start_search

        start_search(shown.content if isinstance(shown.content, BufferControl) else None)

    app = Application[None](
        layout=Layout(HSplit([shown, search, bar]), focused_element=shown),
        key_bindings=merge_key_bindings([load_emacs_page_navigation_bindings(), keys]),
        full_screen=True,
        input=keyboard,
        output=output,
    )
    app.ttimeoutlen = 0.05
    return app
