"""Finding tools: `pytools_list_categories`, `pytools_list_tools`, `pytools_describe`, and `pytools_search_tools`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Literal

from hatchway.agent.json_tools import JsonTool
from hatchway.tools.functions import Tool
from hatchway.tools.search.discovery import Finder
from hatchway.tools.search.settings import search_settings


def discovery_tools(
    mode: Literal["basic", "hybrid"], tools: Mapping[str, Tool], working_dir: Path, closing: AsyncExitStack
) -> list[JsonTool]:
    """What the model calls to find tools of servers and those saved in `gentools/`."""
    settings = search_settings()
    database = None if settings.database is None else working_dir / settings.database
    settings = replace(settings, directory=working_dir / settings.directory, database=database)
    finder = Finder(mode, settings)
    closing.callback(finder.close)
    finder.offer(tools)
    return [JsonTool(name=f"pytools_{each.name}", tool=replace(each, read_only=True)) for each in finder.tools()]
