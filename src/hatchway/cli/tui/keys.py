"""Keys: what each one does, depending on what the screen waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys

from hatchway.cli.tui.asked import Choosing, Typing

if TYPE_CHECKING:
    from hatchway.cli.tui.screen import Screen


def key_bindings(screen: Screen) -> KeyBindings:
    """The bindings of a screen."""
    keys = KeyBindings()
    _field_keys(screen, keys)
    _other_keys(screen, keys)
    return keys


def _field_keys(screen: Screen, keys: KeyBindings) -> None:
    is_typing = Condition(lambda: isinstance(screen.waits, Typing))
    is_prompt = Condition(lambda: isinstance(screen.waits, Typing) and screen.waits.is_prompt)
    has_many_lines = Condition(lambda: isinstance(screen.waits, Typing) and screen.waits.many_lines)
    is_empty = Condition(lambda: not screen.buffer.text)

    @keys.add("enter", filter=is_typing & ~has_many_lines)
    def enter(event: KeyPressEvent) -> None:
        screen.enter()

    @keys.add("escape", "enter", filter=is_typing)
    def newline(event: KeyPressEvent) -> None:
        screen.buffer.newline(copy_margin=False)

    @keys.add("c-s", filter=has_many_lines)
    def accept(event: KeyPressEvent) -> None:
        screen.end(screen.buffer.text)

    @keys.add("escape", filter=is_typing & ~is_prompt)
    @keys.add("c-d", filter=is_prompt & is_empty)
    def leave(event: KeyPressEvent) -> None:
        screen.end(None)

    @keys.add("c-c", filter=is_typing)
    def interrupt(event: KeyPressEvent) -> None:
        screen.interrupt()


def _other_keys(screen: Screen, keys: KeyBindings) -> None:
    is_not_typing = Condition(lambda: not isinstance(screen.waits, Typing))
    is_working = Condition(lambda: screen.waits is None)
    is_choosing = Condition(lambda: isinstance(screen.waits, Choosing))

    @keys.add("escape", filter=is_not_typing, eager=True)
    @keys.add("c-c", filter=is_not_typing, eager=True)
    def cancel(event: KeyPressEvent) -> None:
        screen.on_cancel()

    @keys.add("enter", filter=is_choosing)
    @keys.add(Keys.Any, filter=is_choosing)
    def choose(event: KeyPressEvent) -> None:
        screen.press("\r" if event.data in ("\r", "\n") else event.data.lower())

    @keys.add("backspace", filter=is_working)
    @keys.add(Keys.Any, filter=is_working)
    def type_ahead(event: KeyPressEvent) -> None:
        screen.type_ahead(event.data)

    @keys.add(Keys.BracketedPaste, filter=is_working)
    def paste_ahead(event: KeyPressEvent) -> None:
        screen.paste_ahead(event.data)

    @keys.add("c-o")
    def whole(event: KeyPressEvent) -> None:
        screen.on_whole()
