"""Assembly: the parts of a started agent, put together: interpreter, desk, tools, subagents, replies, turn."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hatchway.agent.compaction import Compaction
from hatchway.agent.desk import Desk
from hatchway.agent.history import History
from hatchway.agent.interpreter import Interpreter
from hatchway.agent.json_tools import JsonTools
from hatchway.agent.models import Model, ModelSettings
from hatchway.agent.outfit import Outfit
from hatchway.agent.replies import Replies
from hatchway.agent.resuming import Resuming
from hatchway.agent.subagents import TASK_TOOL, Subagents
from hatchway.agent.tool_calls import CODE_TOOL, ToolCalls
from hatchway.agent.turn import Turn
from hatchway.agent.usage import Usage
from hatchway.core.events import Emit

if TYPE_CHECKING:
    from hatchway.agent.permissions import PermissionManager


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """What an agent is made of; `started` makes it work."""

    agent_id: str
    system_prompt: str
    settings: ModelSettings | None
    outfit: Outfit
    history: History
    usage: Usage
    emit: Emit
    permissions: PermissionManager | None
    approval_timeout: float | None
    """Seconds."""
    context_tokens: int | None
    subagents: Subagents | None

    async def started(self, model: Model, closing: AsyncExitStack) -> Started:
        """Start everything; `closing` ends it.

        Raises:
            SandboxUnavailable, ServerUnavailable, InvalidSetting, InvalidTool: Something cannot be had.
        """
        interpreter = Interpreter(self.emit, self.agent_id, had_state=bool(self.history.messages))
        fitted = await self.outfit.fit(interpreter, closing)
        store = None if self.outfit.journal is None else interpreter.store
        desk = Desk(self.agent_id, self.emit, self.permissions, self.approval_timeout, store)
        tools = JsonTools(fitted.tools, fitted.threads, [CODE_TOOL, TASK_TOOL, *interpreter.mode.tools])
        calls = ToolCalls(
            agent_id=self.agent_id,
            desk=desk,
            interpreter=interpreter,
            tools=tools,
            subagents=self.subagents,
            large=fitted.large,
            emit=self.emit,
        )
        replies = Replies(
            model=model,
            settings=self.settings,
            instructions=fitted.instructions(self.system_prompt),
            tools=fitted.definitions(self.subagents),
            emit=self.emit,
            agent_id=self.agent_id,
        )
        return Started(
            turn=self._turn(replies, calls),
            replies=replies,
            resuming=Resuming(calls, desk, interpreter, tools, self.subagents),
            offered=self._offered(interpreter, tools),
        )

    def _turn(self, replies: Replies, calls: ToolCalls) -> Turn:
        return Turn(
            history=self.history,
            replies=replies,
            do=calls,
            compaction=Compaction(self.context_tokens, self.emit, self.agent_id),
            usage=self.usage,
            emit=self.emit,
            agent_id=self.agent_id,
        )

    def _offered(self, interpreter: Interpreter, tools: JsonTools) -> dict[str, str]:
        """What can be called, by name, with what each is for."""
        called = {name: tool.description for name, tool in interpreter.mode.tools.items()}
        tasks = {} if self.subagents is None else {TASK_TOOL: self.subagents.definition().description or ""}
        return called | {name: each.tool.description for name, each in tools.by_name.items()} | tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The parts of an agent that works."""

    turn: Turn
    replies: Replies
    resuming: Resuming
    offered: Mapping[str, str]
    """What the code and the model can call, by name, with what each is for."""
