"""What an action has shown, as the host keeps it: named, counted and held to its limits."""

from __future__ import annotations

import asyncio

from hatchway.core.limits import Limits
from hatchway.core.results import DISPLAY_TYPES, Display
from hatchway.core.sandbox import OnDisplay
from hatchway.core.transport import Displayed

MAX_TEXT = 4096
"""Characters kept of a thing's `repr`."""


class Gallery:
    """The displays of one execution, in the order they came.

    Args:
        limits: How many, and how many bytes together.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._displays: list[Display] = []
        self._bytes = 0
        self._on_display: OnDisplay | None = None

    @property
    def displays(self) -> tuple[Display, ...]:
        """All of them."""
        return tuple(self._displays)

    def watch(self, on_display: OnDisplay) -> None:
        """Tell each one as it comes, those that are here at once."""
        self._on_display = on_display
        for display in self._displays:
            self._tell(display)

    def hang(self, shown: Displayed) -> str:
        """Take one more; the field of `Limits` it would go over, in which case it is not taken."""
        text = shown.text[:MAX_TEXT]
        size = len(shown.content) + len(text)
        if len(self._displays) >= self._limits.displays:
            return "displays"
        if self._bytes + size > self._limits.display_bytes:
            return "display_bytes"
        self._bytes += size
        name = f"display-{len(self._displays) + 1}{DISPLAY_TYPES[shown.mime_type]}"
        display = Display(name=name, content=shown.content, mime_type=shown.mime_type, text=text)
        self._displays.append(display)
        self._tell(display)
        return ""

    def _tell(self, display: Display) -> None:
        if self._on_display is None:
            return
        try:
            self._on_display(display)
        except Exception as e:
            self._on_display = None  # the caller's mistake must not stop the execution
            asyncio.get_running_loop().call_exception_handler({"message": "on_display failed", "exception": e})
