"""CodeModeCapability: every tool of an agent as a function of code, for `Agent(..., capabilities=[…])`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic_ai import CallToolsNode, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.tools import AgentDepsT, ToolApproved, ToolDenied
from pydantic_ai.toolsets import AbstractToolset

from hatchway.adapters.pydantic_ai.deciding import code_mode_of, denied_inside
from hatchway.adapters.pydantic_ai.desk import Desk
from hatchway.adapters.pydantic_ai.toolset import CodeModeToolset
from hatchway.core.limits import Limits
from hatchway.core.sandbox import CodeSandbox
from hatchway.gate.rules import Rule

if TYPE_CHECKING:
    from hatchway.journal.store import Journal


@dataclass(kw_only=True)
class CodeModeCapability(AbstractCapability[AgentDepsT]):
    """Wraps all tools of an agent in a `CodeModeToolset`; the fields are the same.

    Beyond that, a `ToolDenied` for a paused action reaches the call inside the code, which learns the reason and can
    go on. Without the capability the framework drops the action; `decided` says it call by call.
    """

    sandbox: CodeSandbox | str
    tool_name: str = "execute_code"
    limits: Limits | None = None
    journal: str | PathLike[str] | Journal | None = None
    rules: Sequence[Rule] = ()
    type_check: bool = True
    state: Literal["none", "run", "conversation"] = "none"
    max_retries: int = 3
    max_sessions: int = 16
    _desk: Desk | None = field(default=None, init=False, repr=False)

    def get_wrapper_toolset(self, toolset: AbstractToolset[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        """The agent's tools, wrapped."""
        made = CodeModeToolset(
            toolset, sandbox=self.sandbox, tool_name=self.tool_name, limits=self.limits, journal=self.journal,
            rules=self.rules, type_check=self.type_check, state=self.state, max_retries=self.max_retries,
            max_sessions=self.max_sessions, desk=self._desk,
        )  # fmt: skip
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
