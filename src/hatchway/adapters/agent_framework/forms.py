"""Forms: tools, mounts and domains come one or several, in any of their forms; each becomes a list of one form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable
from urllib.parse import urlsplit

from agent_framework import FunctionTool

from hatchway.adapters.agent_framework.own_tools import OwnTool
from hatchway.core.errors import InvalidSetting, InvalidTool
from hatchway.core.grants import (
    AllowedDomain,
    AllowedDomainInput,
    FileMount,
    FileMountInput,
    as_allowed_domains,
    as_file_mounts,
)
from hatchway.core.network import Entry
from hatchway.tools.functions import Tool

_OF_A_TARGET = frozenset(".:*/[")
"""What a method has none of, and a target has, but for `localhost`."""


@runtime_checkable
class ToolServer(Protocol):
    """An MCP server of the framework, such as `MCPStdioTool`: its tools are known once it is connected."""

    name: str
    is_connected: bool

    @property
    def functions(self) -> list[FunctionTool]:
        """Its tools."""
        ...

    async def connect(self) -> None:
        """Start it, or reach it."""
        ...

    async def close(self) -> None:
        """Leave it."""
        ...


ToolInput = FunctionTool | Tool | Callable[..., Any] | ToolServer
"""A tool of the framework or of `hatchway.tool`, a function, or an MCP server of the framework for all of its tools."""


def as_tools(given: Any) -> list[FunctionTool | ToolServer]:
    """The tools.

    Raises:
        InvalidTool: Something code cannot call.
    """
    is_one = callable(given) or isinstance(given, str | Mapping | FunctionTool | Tool | ToolServer)
    tools: list[Any] = [given] if is_one else _listed(given, InvalidTool, "a tool")
    return [_tool(each) for each in tools]


def as_mounts(given: Any) -> list[FileMount]:
    """The mounts, with absolute paths.

    Raises:
        InvalidSetting: Something that is no mount, or cannot be read.
    """
    mounts = [given] if _is_mount(given) else _listed(given, InvalidSetting, "a mount")
    if wrong := [each for each in mounts if not _is_mount(each)]:
        raise InvalidSetting(f"{wrong[0]!r:.80} is not a mount", hint=_MOUNT_HINT)
    return [as_file_mounts([cast(FileMountInput, each)])[0] for each in mounts]


def as_domains(given: Any) -> list[AllowedDomain]:
    """The domains.

    Raises:
        InvalidSetting: Something that names no target.
    """
    entries = [given] if _is_domain(given) else _listed(given, InvalidSetting, "a domain")
    made = list(as_allowed_domains([_without_scheme(each) for each in entries]))
    for domain in made:
        Entry.parse(*domain)  # what no sandbox takes is told now, and not when an agent runs
    return made


def domain_key(text: str) -> str:
    """What a domain is known by."""
    return as_allowed_domains([_without_scheme(text)])[0].target


_MOUNT_HINT = "write it as 'data/x.csv', ('/host/path', 'x.csv') or FileMount('/host/path', 'x.csv')"


def _listed(given: Any, error: type[InvalidSetting | InvalidTool], what: str) -> list[Any]:
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise error(f"{given!r:.80} is not {what}, nor a list of them")
    return list(cast(Iterable[Any], given))


def _tool(given: Any) -> FunctionTool | ToolServer:
    if isinstance(given, FunctionTool):
        if given.declaration_only:
            raise InvalidTool(
                f"the tool {given.name!r} is only declared: code cannot call it", hint="give it to the agent"
            )
        return given
    if isinstance(given, ToolServer):
        return given
    if isinstance(given, Tool):
        return OwnTool(given)
    if callable(given) and getattr(given, "__name__", ""):
        return FunctionTool(name=given.__name__, description=given.__doc__ or "", func=cast(Any, given))
    if callable(given):
        raise InvalidTool(f"{given!r:.80} has no name for code to call", hint="FunctionTool(name=…, func=…)")
    raise InvalidTool(
        f"{given!r:.80} is neither a FunctionTool nor a function: code cannot call it", hint="give it to the agent"
    )


def _is_mount(given: Any) -> bool:
    return isinstance(given, str) or (
        isinstance(given, tuple) and len(cast(Any, given)) == 2 and isinstance(given[1], str)
    )


def _is_domain(given: Any) -> bool:
    """Whether it is one entry. A pair is a target with its methods, unless the second can only be a target too."""
    if isinstance(given, str | AllowedDomain):
        return True
    if not isinstance(given, tuple) or len(cast(Any, given)) != 2 or not isinstance(given[0], str):
        return False
    methods: Any = cast(Any, given)[1]
    named = [methods] if isinstance(methods, str) else methods
    return not (isinstance(named, Sequence) and any(map(_is_target, cast(Sequence[Any], named))))


def _is_target(text: Any) -> bool:
    return not isinstance(text, str) or text.lower() == "localhost" or not _OF_A_TARGET.isdisjoint(text)


def _without_scheme(entry: Any) -> AllowedDomainInput:
    if isinstance(entry, str):
        return urlsplit(entry).netloc if "://" in entry else entry
    if not isinstance(entry, tuple) or len(cast(Any, entry)) != 2 or not isinstance(entry[0], str):
        return cast(AllowedDomainInput, entry)  # refused where all of them are read
    target, methods = cast(tuple[str, Any], entry)
    return AllowedDomain(cast(str, _without_scheme(target)), _methods(methods))


def _methods(given: Any) -> Any:
    if isinstance(given, str):
        return (given,)
    return tuple(cast(Iterable[Any], given)) if isinstance(given, Iterable) else given
