"""Which paths are denied by name. Patterns are those of `core/paths.py`, made absolute by the host where they have a
slash."""

from __future__ import annotations

import re


class Denied:
    """A list of patterns over absolute, real paths.

    Args:
        patterns: Absolute ones, or bare names.
        roots: Places in which bare names count; elsewhere lies nothing of the user's.
    """

    def __init__(self, patterns: list[str], roots: list[str]) -> None:
        names = [_glob(p) for p in patterns if "/" not in p]
        paths = [p for p in patterns if "/" in p]
        below = _any([re.escape(root.rstrip("/")) for root in roots])
        choices = [f"{below}/(?:.*/)?{name}" for name in names] + [_path(p.split("/")[1:]) for p in paths]
        self._covers = re.compile(_any(choices) + "(?:/.*)?", re.DOTALL)
        guarded = [_path(parts) for p in paths for parts in _parents(p.split("/")[1:])]
        self._guards = re.compile(_any(guarded), re.DOTALL)

    def covers(self, path: str) -> bool:
        """Whether the path, or a directory it lies in, is denied."""
        return self._covers.fullmatch(path) is not None

    def guards(self, path: str) -> bool:
        """Whether moving the directory would take what is denied in it out of a pattern's sight."""
        return self._guards.fullmatch(path) is not None


def _any(choices: list[str]) -> str:
    return f"(?:{'|'.join(choices)})" if choices else "(?!)"


def _parents(parts: list[str]) -> list[list[str]]:
    return [parts[:n] for n in range(1, len(parts)) if parts[n - 1] != "**"]


def _path(parts: list[str]) -> str:
    text = ""
    for part in parts:
        text += "(?:/[^/]+)*" if part == "**" else "/" + _glob(part)
    return text


def _glob(part: str) -> str:
    """One component: `*`, `?` and `[...]` as a shell knows them."""
    text, at = "", 0
    while at < len(part):
        character = part[at]
        end = part.find("]", at + 2) if character == "[" else -1
        if character == "*":
            text += "[^/]*"
        elif character == "?":
            text += "[^/]"
        elif end > 0:
            inner = part[at + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            text += "(?!/)[%s]" % ("^" + inner[1:] if inner[0] in "!^" else inner)
            at = end
        else:
            text += re.escape(character)
        at += 1
    return text
