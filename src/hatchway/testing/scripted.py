"""A model that says what it was told to say: deterministic, free, offline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Reply:
    """One turn of a model: what it says, and the code action it wants to run."""

    text: str = ""
    """What it says."""
    code: str | None = None
    """The action; None or empty ends the turn-taking."""


Line = Reply | str | Callable[[Sequence[Any]], Reply | str]
"""One line of a script: a reply, its text alone, or a function of the messages so far."""


class ScriptEnded(LookupError):
    """The model was asked once more than its script has lines."""


class ScriptedModel:
    """A test double of a model: each call of `reply` gives the next line of its script.

    Args:
        script: The lines, in order.
    """

    def __init__(self, script: Iterable[Line]) -> None:
        self._script = list(script)
        self.seen: list[tuple[Any, ...]] = []
        """The messages of every call of `reply`, for a test to look at."""

    async def reply(self, messages: Sequence[Any]) -> Reply:
        """The next line of the script.

        Raises:
            ScriptEnded: There is none left.
        """
        if len(self.seen) == len(self._script):
            raise ScriptEnded(f"the script has {len(self._script)} lines, and the model was asked once more")
        line = self._script[len(self.seen)]
        self.seen.append(tuple(messages))
        said = line(messages) if callable(line) else line
        return Reply(said) if isinstance(said, str) else said
