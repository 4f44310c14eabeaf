"""The tools of a run as a catalog: categories, one line each, the whole stub of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from hatchway.core.errors import ToolError
from hatchway.tools.docstrings import one_line
from hatchway.tools.functions import Tool
from hatchway.tools.stubs import Style, render_stubs

_MAX_SUMMARY = 160
_MAX_MEANING = 300
OWN = "functions"
"""The category of tools without a namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is known of a tool before it is described."""

    name: str
    """As the code calls it, or the module it is imported from."""
    category: str
    """Its server, or the folder of a saved tool."""
    summary: str
    """One line."""
    text: str
    """All words it can be found by."""
    meaning: str
    """What it is for: its name and the beginning of its description."""
    description: str = ""
    """How it is called, where that is known without a tool of this run."""


def entry(tool: Tool) -> Entry:
    """A tool as it is listed."""
    words = [tool.name, tool.description, *(f"{each.name} {each.description}" for each in (*tool.takes, *tool.by_key))]
    return Entry(
        name=tool.name,
        category=tool.name.partition(".")[0] if "." in tool.name else OWN,
        summary=summary(tool.description),
        text=" ".join(spelled(word) for word in words),
        meaning=meaning(tool.name, tool.description),
    )


def meaning(name: str, description: str) -> str:
    """Name and first words: what follows is detail, which draws all descriptions together."""
    return f"{spelled(name)}. {one_line(description)[:_MAX_MEANING]}"


def summary(description: str) -> str:
    """The first sentence, in one line."""
    line = one_line(description)
    first = re.split(r"(?<=[.!?]) ", line, maxsplit=1)[0]
    return first if len(first) <= _MAX_SUMMARY else first[: _MAX_SUMMARY - 1].rstrip() + "…"


class Catalog:
    """Tools by name and category.

    Args:
        tools: Those of the run.
        saved: Others, found on disk.
        style: How the code calls them.
    """

    def __init__(self, tools: Mapping[str, Tool], saved: Iterable[Entry] = (), *, style: Style = "declared") -> None:
        self._tools = tools
        self._style: Style = style
        entries = [entry(tool) for tool in tools.values()] + list(saved)
        self.entries = {each.name: each for each in sorted(entries, key=lambda each: each.name)}

    def categories(self) -> dict[str, int]:
        """Each category and how many tools it has, in the order of the alphabet."""
        names = [each.category for each in self.entries.values()]
        return {name: names.count(name) for name in sorted(set(names))}

    def listed(self, category: str) -> list[Entry]:
        """The tools of a category.

        Raises:
            ToolError: There is no such category; those there are are named.
        """
        found = [each for each in self.entries.values() if each.category == category]
        if not found:
            raise ToolError(f"there is no category {category!r}; there are: {', '.join(self.categories()) or 'none'}")
        return found

    def describe(self, name: str) -> str:
        """The typed stub of a tool, with the classes it takes and gives.

        Raises:
            ToolError: There is no such tool; close ones are named.
        """
        if name in self._tools:
            return render_stubs([self._tools[name].as_seen()], self._style)
        if name in self.entries:
            return self.entries[name].description
        close = get_close_matches(name, self.entries, n=3, cutoff=0.5)
        meant = f"; did you mean {' or '.join(close)}?" if close else ""
        raise ToolError(f"there is no tool {name!r}{meant}")


def spelled(text: str) -> str:
    """A name in words: `getFileInfo` and `get_file_info` have the words of "get file info"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_.\-/]+", " ", text)
