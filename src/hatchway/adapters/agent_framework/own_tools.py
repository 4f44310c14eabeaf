"""Own tools: what `hatchway.tool` makes, as a tool of the framework. What it says of itself holds here too."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_framework import FunctionInvocationContext, FunctionTool

from hatchway.core.errors import ToolDenied
from hatchway.tools.functions import Tool

CALL = "hatchway_call"
"""Where the context of a nested call is, in the metadata of the framework's."""


class OwnTool(FunctionTool):
    """A `Tool`: `ask` requires approval, `deny` is refused to the code; the rest the gate does as for any of ours.

    Args:
        own: The tool.
    """

    def __init__(self, own: Tool) -> None:
        super().__init__(
            name=own.name,
            description=own.description,
            approval_mode="always_require" if own.approval == "ask" else "never_require",
            func=self._call,
            input_model=own.parameters,
        )
        self.own = own

    async def _call(self, hatchway_context: FunctionInvocationContext, **arguments: Any) -> Any:
        own = self.own
        if own.approval == "deny":
            raise ToolDenied(f"the tool {own.name} is switched off")
        prepared = own.prepare(own.bind((), arguments))
        if own.takes_context is not None:
            prepared[own.takes_context] = hatchway_context.metadata.get(CALL)
        if own.is_async:
            return await own.func(**prepared)
        return await asyncio.to_thread(own.func, **prepared)
