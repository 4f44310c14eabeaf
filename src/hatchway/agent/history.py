"""The history of one agent: its messages, kept over turns, and stored as they are said where it has a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hatchway.agent.models import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart

if TYPE_CHECKING:
    from hatchway.agent.conversations import Conversation

INTERRUPTED = "interrupted: it was not run to its end"


class History:
    """What was said.

    Args:
        conversation: Where it is stored; None keeps it in memory.
    """

    def __init__(self, conversation: Conversation | None = None) -> None:
        self._conversation = conversation
        self.messages: list[ModelMessage] = [] if conversation is None else conversation.messages()
        """All of it, in Pydantic AI's words."""

    def read(self) -> None:
        """Take what is stored by now."""
        if self._conversation is not None:
            self.messages = self._conversation.messages()

    @property
    def is_stored(self) -> bool:
        """Whether it survives this process."""
        return self._conversation is not None

    async def add(self, message: ModelMessage, *, open_state: dict[str, Any] | None) -> None:
        """Add a message, and say what the turn leaves open from now on; both are stored at once."""
        self.messages.append(message)
        if self._conversation is not None:
            await self._conversation.append([message], open_state=open_state)

    async def set_open(self, state: dict[str, Any] | None) -> None:
        """Say what the turn leaves open."""
        if self._conversation is not None:
            await self._conversation.set_open(state)

    async def replace(self, messages: Sequence[ModelMessage]) -> None:
        """Take these for all that was said."""
        self.messages = list(messages)
        if self._conversation is not None:
            await self._conversation.replace(self.messages)

    def open_state(self) -> dict[str, Any] | None:
        """What a process that is gone left open."""
        return None if self._conversation is None else self._conversation.open_state()

    def unanswered(self) -> list[ToolCallPart]:
        """The tool calls of the last reply that have no answer."""
        last = self.messages[-1] if self.messages else None
        if not isinstance(last, ModelResponse):
            return []
        return [part for part in last.parts if isinstance(part, ToolCallPart)]

    async def end_turn(self, answers: Sequence[ToolReturnPart] = (), why: str = INTERRUPTED) -> None:
        """Leave nothing open: calls without an answer are answered so, because vendors refuse such a history."""
        calls = self.unanswered()
        if not calls:
            return await self.set_open(None)
        given = {part.tool_call_id: part for part in answers}
        parts = [given.get(call.tool_call_id) or _broken_off(call, why) for call in calls]
        await self.add(ModelRequest(parts), open_state=None)


def _broken_off(call: ToolCallPart, why: str) -> ToolReturnPart:
    return ToolReturnPart(call.tool_name, why, call.tool_call_id, outcome="interrupted")
