"""A model for agents that says what it was told to say, through Pydantic AI as any vendor's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from hatchway.core.errors import MissingExtra
from hatchway.testing.scripted import Reply, ScriptEnded

try:
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models.function import (
        AgentInfo,
        DeltaThinkingCalls,
        DeltaThinkingPart,
        DeltaToolCall,
        DeltaToolCalls,
        FunctionModel,
    )
except ImportError as e:
    raise MissingExtra("Pydantic AI, which speaks with models,", "agent") from e


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the model."""

    name: str
    """Of the tool."""
    args: dict[str, Any] | str = field(default_factory=dict[str, Any])
    """Its arguments; a text goes out as it is, so that it can be malformed."""


@dataclass(frozen=True, slots=True)
class Thinking:
    """What the model thinks before it speaks."""

    content: str


Piece = str | Call | Thinking | Reply
"""A part of a reply; `Reply` is text and a code action."""
AgentLine = Piece | Sequence[Piece] | Callable[[Sequence[ModelMessage]], "Piece | Sequence[Piece]"]
"""One reply of the script, or a function of the messages so far that makes it."""
_Delta = str | DeltaToolCalls | DeltaThinkingCalls


class ScriptedAgentModel(FunctionModel):
    """A Pydantic AI model whose replies are the lines of a script, in order, streamed in pieces.

    Args:
        script: The lines. A function given alone is asked for every reply.
    """

    def __init__(
        self, script: Iterable[AgentLine] | Callable[[Sequence[ModelMessage]], Piece | Sequence[Piece]]
    ) -> None:
        self._script = None if callable(script) else list(script)
        self._endless = script if callable(script) else None
        self.seen: list[list[ModelMessage]] = []
        """The messages of every request, for a test to look at."""
        self.offered: list[list[str]] = []
        """The names of the tools of every request."""
        self._ids = count(1)
        super().__init__(stream_function=self._streamed, model_name="scripted")

    async def _streamed(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[_Delta]:
        line = self._line(messages)
        self.offered.append([tool.name for tool in info.function_tools])
        said = line(messages) if callable(line) else line
        pieces: Sequence[Piece] = [said] if isinstance(said, str | Call | Thinking | Reply) else said
        place = count()
        for piece in pieces:
            for delta in self._deltas(piece, place):
                yield delta

    def _line(self, messages: list[ModelMessage]) -> AgentLine:
        number = len(self.seen)
        if self._script is not None and number == len(self._script):
            raise ScriptEnded(f"the script has {number} lines, and the model was asked once more")
        self.seen.append(list(messages))
        return self._endless or (self._script or [])[number]

    def _deltas(self, piece: Piece, place: count[int]) -> Iterable[_Delta]:
        match piece:
            case str():
                half = len(piece) // 2
                yield from (part for part in (piece[:half], piece[half:]) if part)
            case Thinking(content=content):
                yield {next(place): DeltaThinkingPart(content=content)}
            case Call(name=name, args=args):
                text = args if isinstance(args, str) else json.dumps(args)
                call = DeltaToolCall(name=name, json_args=text, tool_call_id=f"call-{next(self._ids)}")
                yield {next(place): call}
            case Reply(text=text, code=code):
                if text:
                    yield from self._deltas(text, place)
                if code:
                    yield from self._deltas(Call("execute_code", {"code": code}), place)
