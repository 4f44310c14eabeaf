"""Tools the model calls itself, by name and JSON: files, discovery, MCP servers. Each call passes the desk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from hatchway.agent.models import ToolDefinition
from hatchway.core.errors import InvalidTool, ToolError, described
from hatchway.mode.threads import ToolThreads
from hatchway.tools.functions import Tool

_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonTool:
    """A tool as the model calls it."""

    name: str
    """As every vendor accepts it."""
    tool: Tool
    """What checks its arguments and runs."""
    diff: Callable[[Mapping[str, Any]], str] | None = None
    """What the call would change, for whoever is asked."""

    def definition(self) -> ToolDefinition:
        """As the model is told of it."""
        return ToolDefinition(
            name=self.name, description=self.tool.description, parameters_json_schema=self.tool.parameters
        )


class JsonTools:
    """The tools by name.

    Raises:
        InvalidTool: Two have one name.
    """

    def __init__(self, tools: Iterable[JsonTool], threads: ToolThreads) -> None:
        self.by_name: dict[str, JsonTool] = {}
        self._threads = threads
        for each in tools:
            if each.name in self.by_name:
                raise InvalidTool(f"two tools of the model are named {each.name!r}")
            self.by_name[each.name] = each

    async def diff(self, tool: JsonTool, arguments: Mapping[str, Any]) -> str:
        """What a call would change; empty where that cannot be told.

        Raises:
            ToolError: It cannot be done at all.
        """
        return "" if tool.diff is None else await self._threads.run(partial(tool.diff, arguments))

    async def call(self, tool: JsonTool, arguments: Mapping[str, Any]) -> Any:
        """What the tool gives.

        Raises:
            ToolError: The arguments do not fit, or the tool failed.
        """
        bound = tool.tool.bind((), arguments)
        prepared = tool.tool.prepare(bound)
        try:
            if tool.tool.is_async:
                return await tool.tool.func(**prepared)
            value: Any = await self._threads.run(partial(tool.tool.func, **prepared))
            return await value if hasattr(value, "__await__") else value
        except ToolError:
            raise
        except Exception as e:
            shown = described(e)
            raise ToolError(f"{shown['type']}: {shown['message']}") from e


def json_name(name: str) -> str:
    """A tool's name as vendors take it: `server.tool` is `server_tool`."""
    return _NAME.sub("_", name)[:_LONGEST_NAME]
