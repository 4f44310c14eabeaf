"""Tools the model calls itself, by name and JSON: files, discovery, MCP servers. Each call passes the desk."""

from __future__ import annotations

import hashlib
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

    Args:
        tools: What the model calls.
        threads: Where they run.
        others: Names that mean something else: a person who is asked must know what is meant.

    Raises:
        InvalidTool: Two have one name.
    """

    def __init__(self, tools: Iterable[JsonTool], threads: ToolThreads, others: Iterable[str] = ()) -> None:
        self.by_name: dict[str, JsonTool] = {}
        self._threads = threads
        taken = frozenset(others)
        for each in tools:
            if each.name in self.by_name or each.name in taken:
                raise InvalidTool(
                    f"two tools are named {each.name!r}",
                    hint="name a function otherwise with tool(fn, name=…), or the server of one of them",
                )
            self.by_name[each.name] = each

    async def diff(self, tool: JsonTool, arguments: Mapping[str, Any]) -> str:
        """What a call would change; empty where that cannot be told.

        Raises:
            ToolError: It cannot be done at all.
        """
        return "" if tool.diff is None else await self._run(partial(tool.diff, arguments))

    async def call(self, tool: JsonTool, arguments: Mapping[str, Any]) -> Any:
        """What the tool gives.

        Raises:
            ToolError: The arguments do not fit, or the tool failed.
        """
        bound = tool.tool.bind((), arguments)
        prepared = tool.tool.prepare(bound)
        return await self._run(partial(tool.tool.func, **prepared), is_async=tool.tool.is_async)

    async def _run(self, func: Callable[[], Any], *, is_async: bool = False) -> Any:
        try:
            value: Any = func() if is_async else await self._threads.run(func)
            return await value if hasattr(value, "__await__") else value
        except ToolError:
            raise
        except Exception as e:
            shown = described(e)
            raise ToolError(f"{shown['type']}: {shown['message']}") from e


def json_name(name: str) -> str:
    """A tool's name as vendors take it: `server.tool` is `server_tool`; a long one ends in a digest of it."""
    plain = _NAME.sub("_", name)
    if len(plain) <= _LONGEST_NAME:
        return plain
    return f"{plain[: _LONGEST_NAME - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
