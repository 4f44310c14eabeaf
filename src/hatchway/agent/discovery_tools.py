"""Finding tools: `pytools_list_categories`, `pytools_list_tools`, `pytools_describe`, and `pytools_search_tools`."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Literal

from hatchway.agent.json_tools import JsonTool
from hatchway.tools.search.discovery import Finder
from hatchway.tools.search.settings import search_settings


def opened_finder(mode: Literal["basic", "hybrid"], working_dir: Path, closing: AsyncExitStack) -> Finder:
    """Finds tools of servers and those saved in `gentools/`; `closing` closes it."""
    settings = search_settings()
    database = None if settings.database is None else working_dir / settings.database
    finder = Finder(mode, replace(settings, directory=working_dir / settings.directory, database=database))
    closing.callback(finder.close)
    return finder


def discovery_tools(finder: Finder) -> list[JsonTool]:
    """What the model calls to find tools; code has the same without `pytools_`."""
    return [JsonTool(name=f"pytools_{each.name}", tool=replace(each, read_only=True)) for each in finder.tools()]
