"""Discovery as tools: `list_categories`, `list_tools`, `describe`, and in hybrid mode `search_tools`."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Literal, TypedDict, get_args

from hatchway.core.errors import InvalidSetting
from hatchway.tools.functions import Tool, tool
from hatchway.tools.search.catalog import Catalog, Entry
from hatchway.tools.search.index import Index
from hatchway.tools.search.saved import SavedTools
from hatchway.tools.search.settings import SearchSettings, search_settings
from hatchway.tools.stubs import Style

Discovery = Literal["basic", "hybrid"]
"""`basic`: by categories. `hybrid`: also by what somebody wants to do."""
_MOST = 50


class Found(TypedDict):
    """A tool in a list."""

    name: str
    summary: str


class Finder:
    """Looks tools up: those of the run, and those saved in `gentools/`.

    Args:
        mode: How they are found.
        settings: Of hybrid search; by default what the environment tells.
        style: How the code calls its tools.

    Raises:
        InvalidSetting: There is no such mode.
    """

    def __init__(self, mode: Discovery, settings: SearchSettings | None = None, *, style: Style = "declared") -> None:
        if mode not in get_args(Discovery):
            raise InvalidSetting(f"discovery is {' or '.join(map(repr, get_args(Discovery)))}, not {mode!r:.80}")
        self._mode = mode
        self._style: Style = style
        self._settings = settings or search_settings()
        self._saved = SavedTools(self._settings.directory)
        self._tools: Mapping[str, Tool] = {}
        self._index: Index | None = None
        self._is_behind = False
        self._lock = threading.RLock()
        self.catalog = Catalog({})

    def offer(self, tools: Mapping[str, Tool]) -> None:
        """Look among these from now on."""
        self._tools = dict(tools)
        self._read()

    def search(self, query: str, limit: int = 8) -> list[Entry]:
        """The tools that fit best, best first."""
        with self._lock:  # tools run in threads, and the index has one connection
            self._refresh()
            if self._index is None:
                self._index = self._opened()
            elif self._is_behind:
                self._index.sync(self.catalog.entries.values())
            self._is_behind = False
            names = self._index.search(query, max(1, min(limit, _MOST)))
        return [self.catalog.entries[name] for name in names if name in self.catalog.entries]

    def tools(self) -> list[Tool]:
        """What the code calls to find tools; these run without asking, for they change nothing."""

        def list_categories() -> dict[str, int]:
            """The categories of tools, and how many tools each has."""
            self._refresh()
            return self.catalog.categories()

        def list_tools(category: str) -> list[Found]:
            """The tools of a category, one line each."""
            self._refresh()
            return [_found(each) for each in self.catalog.listed(category)]

        def describe(name: str) -> str:
            """The signature of a tool: what it takes, what it gives, how it is called."""
            self._refresh()
            return self.catalog.describe(name)

        def search_tools(query: str, limit: int = 5) -> list[Found]:
            """The tools that fit what you want to do, best first. Say it in your own words."""
            return [_found(each) for each in self.search(query, limit)]

        basic = [list_categories, list_tools, describe]
        chosen = basic if self._mode == "basic" else [search_tools, *basic]
        return [tool(each, idempotent=True) for each in chosen]

    def close(self) -> None:
        """Close the index. Legal twice."""
        if self._index is not None:
            self._index.close()
            self._index = None

    def _opened(self) -> Index:
        """The index, searchable: one that could not be filled is none, and the next search tries again."""
        index = Index(self._settings)
        try:
            if self._settings.sync or not index.load():  # where nothing was ever indexed, nothing would be found
                index.sync(self.catalog.entries.values())
        except BaseException:
            index.close()
            raise
        return index

    def _refresh(self) -> None:
        if self._settings.watch and self._saved.is_changed():
            self._read()

    def _read(self) -> None:
        self.catalog = Catalog(self._tools, self._saved.entries(), style=self._style)
        self._is_behind = True  # the next search sees to it: an embedder may take its time, or be away


def _found(entry: Entry) -> Found:
    return {"name": entry.name, "summary": entry.summary}
