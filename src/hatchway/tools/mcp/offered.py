"""A server's listed tool as a `Tool`: named `server.tool`, checked by its schema, asked about unless a rule allows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, cast

from hatchway.core.errors import InvalidTool
from hatchway.tools.functions import Tool
from hatchway.tools.mcp.content import is_wrapped, unwrapped, value_of
from hatchway.tools.mcp.naming import unique
from hatchway.tools.mcp.promise import Promise
from hatchway.tools.mcp.settings import ServerSettings

CallServer = Callable[[str, dict[str, Any], bool], Awaitable[dict[str, Any]]]
"""Calls a tool by its own name, as a task or not; gives the result by its names on the wire."""
_MAX_DESCRIPTION = 4000
"""Characters of a description; a server may send megabytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a server lists, as tools."""

    tools: tuple[Tool, ...]
    """In the server's order."""
    problems: tuple[str, ...]
    """What was left out or changed, and why."""


def offered(
    space: str,
    listed: Sequence[Mapping[str, Any]],
    settings: ServerSettings,
    call: CallServer,
    seen: Callable[[str], dict[str, Any] | None] | None = None,
    look: Callable[[str, Any], None] | None = None,
) -> Listing:
    """The tools of one server.

    Args:
        space: The server's name in the code.
        listed: Its tools, by the names on the wire.
        settings: Its entry.
        call: Calls one of them.
        seen: What one was seen to give, by its own name.
        look: Sees what one gives whose server does not say what that is.
    """
    problems: list[str] = []
    wanted: dict[str, Mapping[str, Any]] = {}
    for each in listed:
        name = str(each["name"])
        if name in wanted:
            problems.append(f"{space}: two tools are named {name!r}; the first is offered")
        elif _is_wanted(name, settings):
            wanted[name] = each
    names = unique(wanted)
    tools = [
        _tool(f"{space}.{names[name]}", each, settings, _Uses(call=call, seen=seen, look=look), problems)
        for name, each in wanted.items()
    ]
    return Listing(tools=tuple(tools), problems=tuple(problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Uses:
    call: CallServer
    seen: Callable[[str], dict[str, Any] | None] | None
    look: Callable[[str, Any], None] | None


def _is_wanted(name: str, settings: ServerSettings) -> bool:
    included = not settings.include or any(fnmatchcase(name, pattern) for pattern in settings.include)
    return included and not any(fnmatchcase(name, pattern) for pattern in settings.exclude)


def _needs_task(listed: Mapping[str, Any]) -> bool:
    """Whether the tool answers later, and cannot be called otherwise."""
    execution: Mapping[str, Any] = listed.get("execution") or {}
    return execution.get("taskSupport") == "required"


def _tool(name: str, listed: Mapping[str, Any], settings: ServerSettings, uses: _Uses, problems: list[str]) -> Tool:
    own_name, output = str(listed["name"]), listed.get("outputSchema")
    wrapped, promise, is_task = is_wrapped(output), Promise(name, output), _needs_task(listed)
    hints: Mapping[str, Any] = listed.get("annotations") or {}
    # one that says both is not believed the better half
    reads = hints.get("readOnlyHint") is True and hints.get("destructiveHint") is not True

    async def invoke(**arguments: Any) -> Any:
        result = await uses.call(own_name, arguments, is_task)
        promise.check(result)
        value = value_of(result, is_wrapped=wrapped)
        if output is None and uses.look is not None:
            uses.look(own_name, value)
        return value

    def made(parameters: Any, returns: Any) -> Tool:
        return Tool(
            name=name,
            description=str(listed.get("description") or listed.get("title") or "")[:_MAX_DESCRIPTION],
            parameters=parameters,
            returns=returns,
            seen=partial(uses.seen, own_name) if output is None and uses.seen is not None else None,
            func=invoke,
            calls="sync",
            approval=settings.approval,
            read_only=reads,
            idempotent=reads or hints.get("idempotentHint") is True,
        )

    returns = unwrapped(cast(dict[str, Any], output)) if wrapped else output
    try:
        return made(listed.get("inputSchema") or {}, returns)
    except InvalidTool as e:
        problems.append(f"{e.message}; its arguments are left to the server to check")
    try:
        return made({"type": "object"}, returns)
    except InvalidTool:
        return made({"type": "object"}, None)
