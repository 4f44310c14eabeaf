"""The offer: which of an agent's tools the code may call, under which names, and which it must look for first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ToolsetTool

from hatchway.adapters.pydantic_ai.nested import call_nested
from hatchway.core.errors import InvalidTool
from hatchway.tools.functions import Tool
from hatchway.tools.naming import check_name
from hatchway.tools.stubs import render_stubs

MOST_FOUND = 8
"""Tools one search gives."""
SEARCH = "search_tools"
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The tools of an agent, sorted."""

    called: Mapping[str, ToolsetTool[Any]]
    """What the code may call, by the agent's name for it."""
    direct: Mapping[str, ToolsetTool[Any]]
    """What stays a tool of the model: its results come from outside the run."""

    def key(self) -> dict[str, ToolDefinition]:
        """What makes two offers the same."""
        return {name: tool.tool_def for name, tool in self.called.items()}


def offer(tools: Mapping[str, ToolsetTool[Any]], ctx: RunContext[Any]) -> Offer:
    """Sort the tools of a run step; those an unloaded capability owns are left out."""
    direct = {name: tool for name, tool in tools.items() if tool.tool_def.kind == "external"}
    called = {
        name: _loaded(tool)
        for name, tool in tools.items()
        if name not in direct and (tool.tool_def.capability_id is None or ctx.is_tool_available(tool.tool_def))
    }
    return Offer(called=called, direct=direct)


def tools_of(definitions: Mapping[str, ToolDefinition]) -> tuple[list[Tool], list[Tool]]:
    """The tools the code may call: those it is told of, and those it must look for.

    Raises:
        InvalidTool: A schema cannot be used.
    """
    told: list[Tool] = []
    sought: list[Tool] = []
    taken: set[str] = set()
    for name, definition in definitions.items():
        made = _tool(name, definition, taken)
        taken.add(made.name)
        (sought if _is_sought(definition) else told).append(made)
    if sought:
        told.append(_search(sought))
    return told, sought


def _loaded(tool: ToolsetTool[Any]) -> ToolsetTool[Any]:
    """The tool as the nested manager takes it: what is found inside the code need not be revealed to the model."""
    definition = tool.tool_def
    if not definition.defer_loading:
        return tool
    metadata = {**(definition.metadata or {}), _SOUGHT: True}
    return replace(tool, tool_def=replace(definition, defer_loading=False, with_native=None, metadata=metadata))


_SOUGHT = "hatchway.sought"


def _is_sought(definition: ToolDefinition) -> bool:
    return bool(definition.metadata and definition.metadata.get(_SOUGHT))


def _tool(name: str, definition: ToolDefinition, taken: set[str]) -> Tool:
    return Tool(
        name=_code_name(name, taken),
        description=definition.description or "",
        parameters=definition.parameters_json_schema,
        returns=definition.return_schema,
        func=partial(call_nested, name),
        sequential=definition.sequential,
        takes_context="hatchway_call",
    )


def _code_name(name: str, taken: set[str]) -> str:
    """A name the code can write: `get-issue` becomes `get_issue`."""
    written = re.sub(r"\W", "_", name)
    try:
        check_name(written)
    except InvalidTool:
        written = f"tool_{written.strip('_')}"
    while written in taken or written == SEARCH:
        written += "_"
    return written


def _search(sought: Sequence[Tool]) -> Tool:
    def search_tools(query: str) -> list[str]:
        """Find more functions by words; gives their definitions. What it finds can be called right away."""
        wanted = {word.lower() for word in _WORD.findall(query)}
        scored = [(len(wanted & _words(tool)), -place) for place, tool in enumerate(sought)]
        best = sorted((score for score in scored if score[0]), reverse=True)[:MOST_FOUND]
        return [render_stubs([sought[-place]], "async") for _, place in best]

    return Tool.from_function(search_tools)


def _words(tool: Tool) -> set[str]:
    return {word.lower() for word in _WORD.findall(f"{tool.name} {tool.description}")}
