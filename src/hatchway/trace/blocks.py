"""Blocks: what a view shows of a run, free of any medium. Their text is neutral already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from hatchway.core.results import ExecFile

Tone = Literal["", "dim", "bold", "good", "bad", "warn", "accent"]
"""How a piece of text is meant; each medium has its own colours."""
WHO = "»"
"""The mark of a line that says who speaks from there on."""


class Part(NamedTuple):
    """A piece of a line."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One fact on one line."""

    at: float | None = None
    """Seconds since the run began; None for a line that has no time of its own."""
    mark: str
    """One character that says what kind of fact it is."""
    tone: Tone = ""
    """How the mark is meant."""
    parts: Sequence[Part]
    whole: Sequence[tuple[str, str]] = ()
    """What had to be cut to fit: a label and the whole text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """Source that runs, or that somebody is asked about."""

    text: str
    about: str = ""
    """Where and when it ran, or what is asked."""
    what: str = "action"
    """What it is: an action, or the name of a tool."""
    language: Literal["python", "diff"] = "python"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """What a model said, as Markdown; or what a person said, as they said it."""

    text: str
    who: str = ""
    """The person; empty for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A piece of what the code printed, or its error; it may end in the middle of a line."""

    text: str
    source: Literal["stdout", "stderr", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An image the code displayed; media without pictures show its name."""

    file: ExecFile
    name: str
    """Its name, neutral."""


Block = Line | Code | Prose | Said | Picture
