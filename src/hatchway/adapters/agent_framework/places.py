"""code_tool: where an agent's code runs, by one word. In a sandbox of ours, or at the vendor of its chat client."""

from __future__ import annotations

from collections.abc import Mapping
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
from hatchway.mode.code_places import VENDORS

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
        InvalidSetting: No such place, or a client that is not one of this vendor.
        SandboxUnavailable: There is no such sandbox here.
    """
    if where in TOOLS:
        return TOOLS[where](**settings)
    if where not in VENDORS:
        raise InvalidSetting(
            f"there is no place {where!r} for code to run", hint=f"there are {', '.join([*VENDORS, *TOOLS])}"
        )
    vendor = str(getattr(client, "OTEL_PROVIDER_NAME", ""))
    if not isinstance(client, SupportsCodeInterpreterTool) or where not in vendor:
        told = type(client).__name__ if client is not None else "none"
        raise InvalidSetting(
            f"code at {where} needs a chat client of {where} that has a code interpreter, here is {told}",
            hint=f"code_tool({where!r}, client=the_client), or code_tool('jail'), which works with any client",
        )
    return client.get_code_interpreter_tool(**settings)
