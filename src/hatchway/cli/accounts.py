"""Accounts: what `hatchway run TASK` tells of a turn, as text for a person or as lines of JSON."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from hatchway.cli.display import cut, make_console, neutral
from hatchway.cli.exits import Exit, exit_for
from hatchway.cli.failing import failure_text
from hatchway.cli.objects import error_object, event_object, print_json
from hatchway.cli.recording import Recording
from hatchway.core.decisions import Settlement
from hatchway.core.errors import ApprovalRequired
from hatchway.core.events import (
    AgentEvent,
    ApprovalRequest,
    Cancelled,
    CodeExecutionOutput,
    CodeExecutionOutputChunk,
    Response,
    ResponseChunk,
    RunFailed,
)
from hatchway.core.values import as_python
from hatchway.trace.blocks import Block, Prose
from hatchway.trace.dialogue import MAIN, Dialogue
from hatchway.trace.terminal import Painter
from hatchway.trace.text import NeutralPieces

if TYPE_CHECKING:
    from hatchway.agent.agent import Agent

ENDS = {"rejected": Exit.NOT_APPROVED, "cancelled": Exit.INTERRUPTED}


class Account(ABC):
    """Takes the events of a turn.

    Args:
        recording: Takes all that a person would see.
    """

    def __init__(self, recording: Recording | None) -> None:
        self.exit = Exit.DONE
        self.answer = ""
        """The last thing the agent said."""
        self._recording = recording
        self._dialogue = Dialogue()

    def said(self, prompt: str) -> None:
        """The prompt."""
        if self._recording is not None:
            self._recording.add(self._dialogue.said(prompt, is_code=isinstance(self, CodeAccount)))

    def take(self, event: AgentEvent) -> None:
        """One event."""
        match event:
            case Cancelled(reason=reason):
                self.exit = ENDS.get(reason, Exit.FAILED)
            case Response(content=text, agent_id="" | "main"):
                self.answer = text
            case _:
                pass
        blocks = self._dialogue.told(event)
        if self._recording is not None:
            self._recording.add(blocks)
        self.show(event, blocks)

    def allowed(self, request: ApprovalRequest, *, is_shown: bool = False) -> None:
        """Something that nobody was asked about; `is_shown`: the person wrote its code."""
        blocks = self._dialogue.allowed(request, is_shown=is_shown)
        if self._recording is not None:
            self._recording.add(blocks)
        self.show(request, blocks)

    def decided(self, request: ApprovalRequest, decision: Settlement) -> None:
        """What somebody answered."""
        blocks = self._dialogue.decided(request, decision)
        if self._recording is not None:
            self._recording.add(blocks)
        self.tell(blocks)

    @abstractmethod
    def tell(self, blocks: Sequence[Block]) -> None:
        """Tell a person what is no event."""

    @abstractmethod
    def show(self, event: AgentEvent, blocks: Sequence[Block]) -> None:
        """Tell one event, whose blocks these are."""

    @abstractmethod
    def failed(self, error: Exception) -> None:
        """The turn broke off."""

    @abstractmethod
    def end_turn(self) -> None:
        """A turn is over, and another may follow."""

    @abstractmethod
    def end(self, agent: Agent | None) -> None:
        """All is over."""


class TextAccount(Account):
    """The answer on stdout: as it comes at a terminal, at the end in a pipe. Everything else on stderr."""

    def __init__(self, recording: Recording | None) -> None:
        super().__init__(recording)
        self._painter = Painter(make_console(stderr=True))
        self._streams = sys.stdout.isatty()
        self._held = ""
        self._is_open = False
        self._pieces = NeutralPieces()

    def show(self, event: AgentEvent, blocks: Sequence[Block]) -> None:
        """Tell one event."""
        is_main = event.agent_id in ("", MAIN)
        match event:
            case ResponseChunk(content=text) if is_main and self._streams:
                click.echo(self._pieces.feed(text), nl=False)
                self._is_open = not text.endswith("\n")
            case Response(content=text) if is_main:
                self._end_line()
                self._release()
                self._held = "" if self._streams else text
            case _:
                if blocks:
                    self._end_line()
                    self._release()
                self.tell(blocks)

    def tell(self, blocks: Sequence[Block]) -> None:
        """Paint blocks."""
        for block in blocks:
            self._painter.paint(block)

    def failed(self, error: Exception) -> None:
        """The turn broke off, or waits."""
        self._end_line()
        word = "" if isinstance(error, ApprovalRequired) else "Error: "
        click.echo(f"{word}{cut(neutral(failure_text(error)), 4000)}", err=True)

    def end_turn(self) -> None:
        """What is held back was the answer."""
        self._end_line()
        if self._held:
            click.echo(neutral(self._held.rstrip("\n")))
            self._held = ""

    def end(self, agent: Agent | None) -> None:
        """All is over."""
        self.end_turn()

    def _release(self) -> None:
        """What is held back was no answer: something came after it."""
        if self._held.strip():
            self._painter.paint(Prose(text=neutral(self._held)))
        self._held = ""

    def _end_line(self) -> None:
        self._painter.end_line()
        if self._is_open:
            click.echo(self._pieces.end())
            self._is_open = False


class CodeAccount(TextAccount):
    """For a person who writes the actions: what they print and give on stdout, as `hatchway exec` does."""

    def show(self, event: AgentEvent, blocks: Sequence[Block]) -> None:
        """Tell one event."""
        match event:
            case CodeExecutionOutputChunk(text=text, stream="stdout"):
                click.echo(neutral(text), nl=False)
                self._is_open = not text.endswith("\n")
            case CodeExecutionOutput(result=result):
                self._end_line()
                if result is not None and result.output is not None:
                    click.echo(neutral(as_python(result.output)))
            case RunFailed(error=error):
                self.exit = exit_for(error)
                super().show(event, blocks)
            case _:
                super().show(event, blocks)


class JsonAccount(Account):
    """Each event as a line of JSON, and one at the end."""

    def __init__(self, recording: Recording | None) -> None:
        super().__init__(recording)
        self._error: dict[str, str] | None = None

    def show(self, event: AgentEvent, blocks: Sequence[Block]) -> None:
        """Print one event."""
        print_json(event_object(event))
        sys.stdout.flush()

    def tell(self, blocks: Sequence[Block]) -> None:
        """Events say it all."""

    def failed(self, error: Exception) -> None:
        """Remember why."""
        self._error = error_object(error)

    def end_turn(self) -> None:
        """Told at the end: there is one turn."""

    def end(self, agent: Agent | None) -> None:
        """Print how it ended."""
        told: dict[str, Any] = {"event": "Ended", "state": self.exit.name.lower(), "answer": self.answer}
        if agent is not None:
            usage = agent.usage
            told["usage"] = {"input": usage.input_tokens, "output": usage.output_tokens, "cost": usage.cost}
            told["conversation"] = agent.conversation.id if agent.conversation is not None else None
        print_json(told | {"error": self._error})
