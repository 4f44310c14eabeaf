"""What people say when they want a common kind of tool: a table of wishes that bridges their words and a tool's.

Somebody who wants `create_event` says "put it into my schedule", and no embedding of words finds one by the other. The
table (`wishes.txt`) holds kinds of tools and such sayings; a tool takes part in wishes whose names are like its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

from hatchway.tools.search.embedding import embedder, normal
from hatchway.tools.search.settings import SearchSettings

_KINDS = 3
"""Wishes that a tool takes part in."""
_NAME_SHARE = 0.5
"""How much the likeness of names counts for that; the rest is the whole meaning."""

_NEAREST_SHARE = 0.5
"""How much the nearest saying of a wish counts; the rest is their middle, which finds what none of them says."""


class Wishes:
    """How near a query comes to what people say for each tool.

    Args:
        names: Of the tools, spelled in words.
        meanings: Their vectors, as the offline embedder makes them.
    """

    def __init__(self, names: Sequence[str], meanings: Any) -> None:
        import numpy as np

        table = _table()
        self._wishes, self._sayings, self._begins = table.wishes, table.sayings, table.begins
        alike = np.maximum.reduceat(table.embed(names) @ table.names.T, table.name_begins, axis=1)
        near = _NAME_SHARE * alike + (1 - _NAME_SHARE) * (meanings @ table.kinds.T)
        self._kinds = np.argsort(-near, axis=1, kind="stable")[:, :_KINDS]
        self._share = np.take_along_axis(near, self._kinds, axis=1).clip(0) ** 2

    def heard(self, query: Any) -> Any:
        """For each tool, how far the query stands out among all wishes, by the best of the tool's own."""
        import numpy as np

        nearest = np.maximum.reduceat(np.einsum("ij,j->i", self._sayings, query), self._begins)
        said = _NEAREST_SHARE * nearest + (1 - _NEAREST_SHARE) * np.einsum("ij,j->i", self._wishes, query)
        apart = ((said - said.mean()) / (said.std() or 1.0)).clip(0)
        return (apart[self._kinds] * self._share).max(axis=1)


class _Table:
    """The wishes as vectors; what belongs to one wish stands together, from its beginning on."""

    def __init__(self) -> None:
        import numpy as np

        self.embed = embed = embedder(SearchSettings())
        rows = [line.split(" = ") for line in _lines()]
        names = [row[0].split(", ") for row in rows]
        sayings = [[*row[1].split("; "), *named] for row, named in zip(rows, names, strict=True)]
        self.kinds = embed([" ".join(named) for named in names])
        self.names = embed([name for named in names for name in named])
        self.begins = np.cumsum([0, *map(len, sayings[:-1])])
        self.sayings = embed([saying for said in sayings for saying in said])
        self.wishes = normal(np.add.reduceat(self.sayings, self.begins, axis=0))
        self.name_begins = np.cumsum([0, *map(len, names[:-1])])


@lru_cache(maxsize=1)
def _table() -> _Table:
    return _Table()


def _lines() -> list[str]:
    text = files("hatchway.tools.search").joinpath("wishes.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if " = " in line]
