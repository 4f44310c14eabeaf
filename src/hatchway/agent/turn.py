"""One turn: from a prompt to the model's answer, over as many replies and tool calls as it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hatchway.agent.compaction import Compaction
from hatchway.agent.history import History
from hatchway.agent.models import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from hatchway.agent.replies import Replies
from hatchway.agent.usage import Usage
from hatchway.core.errors import ApprovalRequired
from hatchway.core.events import Cancelled, Emit

NOT_RUN = "not run: the turn had reached its limit of tool rounds"
CANCELLED = "cancelled by the user"
UNDECIDED = "not run: nobody decided about it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What came of one tool call."""

    part: ToolReturnPart
    """What the model is told."""
    ends_turn: bool = False
    """A person said no and nothing more."""


class DoCalls(Protocol):
    """Does the tool calls of one reply."""

    async def __call__(self, calls: Sequence[ToolCallPart], book: CallsBook) -> bool: ...


@dataclass(slots=True, kw_only=True)
class CallsBook:
    """What is known about the calls of the last reply; stored as it changes, so that a killed turn can go on."""

    history: History
    limit: int | None
    """Tool rounds left of the turn."""
    done: list[ToolReturnPart] = field(default_factory=list[ToolReturnPart])
    """Answers so far."""
    now: dict[str, Any] | None = None
    """The call that is under way."""

    def state(self) -> dict[str, Any]:
        """As it is stored."""
        from hatchway.agent.resuming import parts_to_json

        return {"limit": self.limit, "done": parts_to_json(self.done), "now": self.now}

    async def begin(self, now: dict[str, Any]) -> None:
        """A call is about to run; it may once this returns."""
        self.now = now
        if self.history.is_stored:
            await self.history.set_open(self.state())

    async def add(self, part: ToolReturnPart, *, is_last: bool) -> None:
        """A call is done; after the last one all answers are stored together."""
        self.done.append(part)
        self.now = None
        if self.history.is_stored and not is_last:
            await self.history.set_open(self.state())


class Turn:
    """Drives one turn.

    Args:
        history: What was said; the turn adds to it.
        replies: Asks the model.
        do: Does its tool calls.
        compaction: Sums the history up before it is too long.
        usage: Counts.
        emit: Takes events.
        agent_id: Whose turn it is.
    """

    def __init__(
        self,
        *,
        history: History,
        replies: Replies,
        do: DoCalls,
        compaction: Compaction,
        usage: Usage,
        emit: Emit,
        agent_id: str,
    ) -> None:
        self._history, self._replies, self._do = history, replies, do
        self._compaction, self._usage = compaction, usage
        self._emit, self._agent_id = emit, agent_id
        self._book: CallsBook | None = None

    async def run(self, prompt: str | Sequence[UserContent], max_turns: int | None) -> None:
        """Answer a prompt; what an earlier turn left open is left."""
        if self._history.unanswered():
            await self._history.end_turn()
        said = ModelRequest([UserPromptPart(prompt)])
        await self._history.add(said, open_state={"limit": max_turns})
        await self._guarded(self._rounds(max_turns))

    async def go_on(self, book: CallsBook, do: DoCalls) -> None:
        """Go on with a turn whose process is gone; `do` knows what becomes of the calls it was at."""
        await self._guarded(self._taken_up(book, do))

    async def _taken_up(self, book: CallsBook, do: DoCalls) -> None:
        if calls := self._history.unanswered():
            if not await self._answered(calls, book, do):
                return
        elif isinstance(self._history.messages[-1], ModelResponse):
            return await self._history.set_open(None)
        await self._rounds(book.limit)

    async def _rounds(self, limit: int | None) -> None:
        while True:
            reply = await self._reply()
            calls = [part for part in reply.parts if isinstance(part, ToolCallPart)]
            await self._history.add(reply, open_state={"limit": limit} if calls else None)
            if not calls:
                return
            if limit is not None and limit <= 0:
                await self._history.end_turn(why=NOT_RUN)
                return self._emit(Cancelled("max_turns", agent_id=self._agent_id))
            limit = None if limit is None else limit - 1
            if not await self._answered(calls, CallsBook(history=self._history, limit=limit), self._do):
                return

    async def _answered(self, calls: Sequence[ToolCallPart], book: CallsBook, do: DoCalls) -> bool:
        """Do the calls and tell the model. False: somebody's bare no has ended the turn."""
        self._book = book
        goes_on = await do(calls, book)
        self._book = None
        if not goes_on:
            await self._history.end_turn(book.done, why="not run: the user rejected an earlier call")
            self._emit(Cancelled("rejected", agent_id=self._agent_id))
            return False
        await self._history.add(ModelRequest(list(book.done)), open_state={"limit": book.limit})
        return True

    async def _reply(self) -> ModelResponse:
        reply = await self._compaction.reply(self._history, self._replies, self._usage)
        self._usage.count(reply)
        return reply

    async def _guarded(self, work: Any) -> None:
        """Whatever ends the turn, the history stays one that a model can be asked with."""
        try:
            await work
        except asyncio.CancelledError:
            await self._closed(CANCELLED)
            raise
        except ApprovalRequired:
            if not self._history.is_stored:  # nobody could go on with it
                await self._closed(UNDECIDED)
            raise
        except Exception:
            await self._closed("interrupted: the turn failed")
            raise
        finally:
            self._book = None

    async def _closed(self, why: str) -> None:
        partial, self._replies.partial = self._replies.partial, None
        if partial is not None and (kept := [part for part in partial.parts if isinstance(part, TextPart)]):
            await self._history.add(ModelResponse(kept, model_name=partial.model_name), open_state=None)
        await self._history.end_turn(self._book.done if self._book is not None else (), why=why)
