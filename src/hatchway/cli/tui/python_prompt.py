"""A prompt for Python: Enter is a newline where Python wants more."""

from __future__ import annotations

import codeop

from hatchway.cli.tui.screen import Screen

LABELS = {False: "› ", True: ">>> "}


def set_prompt(screen: Screen, *, is_python: bool) -> None:
    """Make the prompt one for code, or one for words."""
    screen.label = LABELS[is_python]
    screen.is_complete = is_whole if is_python else lambda text: True


def is_whole(text: str) -> bool:
    """Whether a text is an action, or a command; an empty line ends a block."""
    if text.startswith("/"):
        return True
    try:
        return codeop.compile_command(text, symbol="exec") is not None or text.rstrip(" ").endswith("\n")
    except (SyntaxError, ValueError, OverflowError):
        return True  # the sandbox says what is wrong with it
