"""CodeModeCapability: every tool of an agent as a function of code, for `Agent(..., capabilities=[…])`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from pydantic_ai import CallToolsNode, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.tools import AgentDepsT, ToolApproved, ToolDenied
from pydantic_ai.toolsets import AbstractToolset

from hatchway.adapters.pydantic_ai.deciding import code_mode_of, denied_inside
from hatchway.adapters.pydantic_ai.desk import Desk
from hatchway.adapters.pydantic_ai.settings import CodeModeSettings
from hatchway.adapters.pydantic_ai.toolset import CodeModeToolset


@dataclass(kw_only=True)
class CodeModeCapability(CodeModeSettings, AbstractCapability[AgentDepsT]):
    """Wraps all tools of an agent in a `CodeModeToolset`; the fields are the same.

    Beyond that, a `ToolDenied` for a paused action reaches the call inside the code, which learns the reason and can
    go on. Without the capability the framework drops the action; `decided` says it call by call.
    """

    _desk: Desk | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.check()

    def get_wrapper_toolset(self, toolset: AbstractToolset[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        """The agent's tools, wrapped."""
        made = CodeModeToolset(toolset, **self.settings(), desk=self._desk)
        self._desk = made.desk  # kept warm from run to run
        return made

    async def before_node_run(self, ctx: RunContext[AgentDepsT], *, node: Any) -> Any:
        """Turn a denial of a paused action into denials of the calls inside it."""
        if isinstance(node, CallToolsNode):
            _pass_denials_on(cast(CallToolsNode[Any, Any], node))
        return cast(Any, node)

    async def aclose(self) -> None:
        """Close the sandbox of this event loop; actions paused without a journal end."""
        if self._desk is not None:
            await self._desk.aclose()


def _pass_denials_on(node: CallToolsNode[Any, Any]) -> None:
    results, told = node.tool_call_results or {}, node.tool_call_metadata or {}
    for call_id, result in list(results.items()):
        if isinstance(result, ToolDenied) and code_mode_of(told.get(call_id)) is not None:
            results[call_id] = ToolApproved()
            told[call_id] = denied_inside(told[call_id], result.message)
