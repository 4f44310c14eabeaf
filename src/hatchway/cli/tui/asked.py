"""Asked: what a screen waits for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

QUIT = "q"
"""This and Enter at the prompt leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Typing:
    """A field is open."""

    label: str
    done: asyncio.Future[str | None]
    is_prompt: bool = False
    """It is the prompt itself: Esc does not leave it, paths and commands complete."""
    many_lines: bool = False
    """Enter is a newline and Ctrl+S ends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choosing:
    """A question that is answered by one key."""

    question: str
    keys: frozenset[str]
    done: asyncio.Future[str]
