"""Logs: lines of their own, printed where they disturb nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager

from hatchway.trace.text import cut, neutral

LINE_CHARACTERS = 500


class _Lines(logging.Handler):
    def __init__(self, print_: Callable[[str], None]) -> None:
        super().__init__()
        self._print, self._loop = print_, asyncio.get_running_loop()

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        said = cut(neutral(self.format(record)), LINE_CHARACTERS)
        line = f"{record.levelname.lower()} {record.name}: {said}\n"
        self._loop.call_soon_threadsafe(self._print, line)


@contextmanager
def logging_to(print_: Callable[[str], None], level: str) -> Generator[None]:
    """Print what Hatchway logs from this level on, and what others log as warnings; with debug, all of it."""
    handler, root, ours = _Lines(print_), logging.getLogger(), logging.getLogger("hatchway")
    before = root.level, ours.level
    ours.setLevel(level.upper())
    root.setLevel("DEBUG" if level == "debug" else max(logging.WARNING, logging.getLevelNamesMapping()[level.upper()]))
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before[0])
        ours.setLevel(before[1])
