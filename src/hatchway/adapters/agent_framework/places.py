"""code_tool: where an agent's code runs, by one word. In a sandbox of ours, or at the vendor of its chat client."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from agent_framework import SupportsCodeInterpreterTool

from hatchway.adapters.agent_framework.tools import (
    CodeTool,
    ContainerExecuteCodeTool,
    HyperlightExecuteCodeTool,
    JailExecuteCodeTool,
    MontyExecuteCodeTool,
)
from hatchway.core.errors import InvalidSetting
from hatchway.mode.code_places import check_place, check_settings

TOOLS: Mapping[str, type[CodeTool]] = {
    "jail": JailExecuteCodeTool,
    "monty": MontyExecuteCodeTool,
    "container": ContainerExecuteCodeTool,
    "hyperlight": HyperlightExecuteCodeTool,
}
"""The tools by their sandbox."""


def code_tool(where: str, *, client: Any = None, **settings: Any) -> Any:
    """A tool that gives an agent code, here or at the vendor of its chat client: `Agent(client, tools=[…])`.

    In a sandbox it is an `…ExecuteCodeTool`, whose code may call its `tools`. At a vendor it is the client's own code
    interpreter: its code calls nothing of ours; for that see `hatchway.hosted`.

    Args:
        where: `openai`, `anthropic` or `gemini`; or a sandbox: `jail`, `monty`, `container`, `hyperlight`.
        client: The agent's chat client; needed at a vendor only.
        settings: Of the `…ExecuteCodeTool`, or of the client's `get_code_interpreter_tool`.

    Raises:
        InvalidSetting: No such place, a client that is not one of this vendor, or settings it does not take.
        SandboxUnavailable: There is no such sandbox here.
    """
    check_place(where, TOOLS)
    if where in TOOLS:
        check_settings(TOOLS[where].__name__, settings, _names(TOOLS[where]))
        return TOOLS[where](**settings)
    vendor = str(getattr(client, "OTEL_PROVIDER_NAME", ""))
    if not isinstance(client, SupportsCodeInterpreterTool) or where not in vendor:
        told = type(client).__name__ if client is not None else "none"
        raise InvalidSetting(
            f"code at {where} needs a chat client of {where} that has a code interpreter, here is {told}",
            hint=f"code_tool({where!r}, client=the_client), or code_tool('jail'), which works with any client",
        )
    check_settings(f"{type(client).__name__}'s code interpreter", settings, _names(client.get_code_interpreter_tool))
    return client.get_code_interpreter_tool(**settings)


def _names(taker: Callable[..., Any]) -> set[str]:
    """What a function takes by name."""
    taken = inspect.signature(taker).parameters.values()
    return {each.name for each in taken if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
