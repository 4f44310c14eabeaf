"""A conversation with an agent, and one turn of it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from hatchway.core.results import ExecFile
from hatchway.executors.parts import CodeExecutionResultPart, ExecutableCodePart
from hatchway.mode.models import ModelMessage, RequestUsage

Part = ExecutableCodePart | CodeExecutionResultPart


@dataclass(slots=True, kw_only=True)
class Conversation:
    """What was said over several turns; give the same one to each."""

    messages: list[ModelMessage] = field(default_factory=list["ModelMessage"])
    """All of it, in Pydantic AI's words; each turn appends its own."""
    execution_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Under this name a stateful executor keeps its state from turn to turn."""
    vendor_session: object | None = field(default=None, repr=False)
    """What a vendor keeps of it, with the container, where the code runs there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """From the user's words to the model's answer."""

    text: str
    """The answer."""
    parts: tuple[Part, ...]
    """The code that was run and what came of it, in order."""
    rounds: int
    """How often code was run and fed back."""
    usage: RequestUsage
    """Tokens of all requests."""

    @property
    def files(self) -> tuple[ExecFile, ...]:
        """The files the code made, in order; of one name the last one only."""
        results = [part for part in self.parts if isinstance(part, CodeExecutionResultPart)]
        return tuple({file.name: file for part in results for file in part.files}.values())
