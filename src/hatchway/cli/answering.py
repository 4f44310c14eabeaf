"""Answering: `hatchway run TASK`. The answer on stdout, what led to it on stderr; or every event as a line of JSON."""

from __future__ import annotations

import asyncio
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from hatchway.agent.human import HUMAN
from hatchway.cli.agent_options import AgentOptions
from hatchway.cli.agent_setup import NO_MODEL, Setup, load_model, prepare, started
from hatchway.cli.attachments import attached
from hatchway.cli.display import cut, make_console, neutral
from hatchway.cli.exits import Exit, exit_for
from hatchway.cli.logs import logging_to
from hatchway.cli.objects import error_object, event_object, print_json
from hatchway.cli.prompt import Asker, NotApproved, asking, nobody
from hatchway.cli.recording import Recording
from hatchway.cli.terminal import find_terminal
from hatchway.cli.tui.asked import QUIT
from hatchway.core.decisions import Allow, Decision, Deny
from hatchway.core.errors import HatchwayError, InvalidSetting
from hatchway.core.events import AgentEvent, ApprovalRequest, Cancelled, Response, ResponseChunk
from hatchway.trace.blocks import Prose
from hatchway.trace.dialogue import MAIN, Dialogue
from hatchway.trace.terminal import Painter

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
            self._recording.add(self._dialogue.said(prompt))

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

    def decided(self, request: ApprovalRequest, decision: Decision) -> None:
        """What somebody answered."""
        if self._recording is not None:
            self._recording.add(self._dialogue.decided(request, decision))

    @abstractmethod
    def show(self, event: AgentEvent, blocks: Any) -> None:
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

    def show(self, event: AgentEvent, blocks: Any) -> None:
        """Tell one event."""
        is_main = event.agent_id in ("", MAIN)
        match event:
            case ResponseChunk(content=text) if is_main and self._streams:
                click.echo(neutral(text), nl=False)
                self._is_open = not text.endswith("\n")
            case Response(content=text) if is_main:
                self._end_line()
                self._release()
                self._held = "" if self._streams else text
            case _:
                if blocks:
                    self._end_line()
                    self._release()
                for block in blocks:
                    self._painter.paint(block)

    def failed(self, error: Exception) -> None:
        """The turn broke off."""
        self._end_line()
        click.echo(f"Error: {cut(neutral(_told(error)), 4000)}", err=True)

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
            click.echo()
            self._is_open = False


class JsonAccount(Account):
    """Each event as a line of JSON, and one at the end."""

    def __init__(self, recording: Recording | None) -> None:
        super().__init__(recording)
        self._error: dict[str, str] | None = None

    def show(self, event: AgentEvent, blocks: Any) -> None:
        """Print one event."""
        print_json(event_object(event))
        sys.stdout.flush()

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


async def answer(prompts: AsyncIterator[str], options: AgentOptions, *, as_json: bool) -> Exit:
    """Answer prompts, one after the other, and end; how it ended."""
    recording = Recording(options.record_dir, options.record_title) if options.record else None
    account = JsonAccount(recording) if as_json else TextAccount(recording)
    agent: Agent | None = None
    logs = logging_to(partial(click.echo, nl=False, err=True), options.log_level)
    try:
        setup = await asyncio.to_thread(prepare, options)
        name = setup.choice.model
        if name is None:
            raise InvalidSetting(f"there is no model: {setup.choice.why}", hint=NO_MODEL)
        model = await asyncio.to_thread(load_model, name, setup.choice)
        with asking(yes=options.yes, otherwise=nobody, stdin_is_code=not sys.stdin.isatty()) as ask, logs:
            async with started(setup, model) as (agent, _):
                await _turns(agent, prompts, setup, account, ask)
    except NotApproved as e:
        account.exit = Exit.NOT_APPROVED
        account.failed(e)
    except Exception as e:  # whatever a vendor's library raises is told, and is no traceback
        account.exit = exit_for(e)
        account.failed(e)
    account.end(agent)
    for path in recording.write() if recording is not None else ():
        click.echo(f"recorded {neutral(str(path))}", err=True)
    return account.exit


async def once(prompt: str) -> AsyncIterator[str]:
    """One prompt."""
    yield prompt


async def typed() -> AsyncIterator[str]:
    """Lines, at a terminal that can do no more than lines."""
    terminal = find_terminal()
    while terminal is not None:
        click.echo("› ", nl=False, err=True)
        line = await terminal.line()
        if line is None or line == QUIT:
            return
        if line:
            yield line


async def _turns(agent: Agent, prompts: AsyncIterator[str], setup: Setup, account: Account, ask: Asker) -> None:
    if setup.options.goes_on or setup.options.session:
        await _follow(agent.resume(), account, ask)
    async for prompt in prompts:
        await _turn(agent, prompt, setup, account, ask)
        account.end_turn()


async def _turn(agent: Agent, prompt: str, setup: Setup, account: Account, ask: Asker) -> None:
    content: Any = prompt
    if setup.choice.model != HUMAN:
        brought = await asyncio.to_thread(attached, prompt, Path.cwd())
        content = brought.content()

    async def answered(request: ApprovalRequest) -> Decision:
        own = setup.choice.model == HUMAN and request.kind == "code" and request.tool_args.get("code") == prompt
        return Allow() if own else await ask(request)

    account.said(prompt)
    await _follow(agent.stream(content), account, answered)


async def _follow(events: AsyncIterator[AgentEvent], account: Account, ask: Asker) -> None:
    """Tell each event; questions are put one after the other, while the rest goes on."""
    waiting: list[asyncio.Future[None]] = []
    lock = asyncio.Lock()

    async def settle(request: ApprovalRequest) -> None:
        async with lock:
            decision = await ask(request)
            if isinstance(decision, Deny) and decision.reason == "the person said no":
                decision = Deny()
            account.decided(request, decision)
            request.approve(decision)

    async with aclosing(cast("AsyncGenerator[AgentEvent]", events)) as stream:
        try:
            async for event in _or_failed(stream, waiting):
                account.take(event)
                if isinstance(event, ApprovalRequest):
                    waiting.append(asyncio.ensure_future(settle(event)))
        finally:
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)


async def _or_failed(
    stream: AsyncGenerator[AgentEvent], waiting: list[asyncio.Future[None]]
) -> AsyncGenerator[AgentEvent]:
    """The events, until somebody who was asked cannot answer: that is raised here."""
    while True:
        following = asyncio.ensure_future(anext(stream, None))
        while not following.done():
            await asyncio.wait([following, *waiting], return_when=asyncio.FIRST_COMPLETED)
            for each in [each for each in waiting if each.done()]:
                waiting.remove(each)
                if (error := each.exception()) is not None:
                    following.cancel()
                    await asyncio.gather(following, return_exceptions=True)
                    raise error
        if (event := following.result()) is None:
            return
        yield event


def _told(error: Exception) -> str:
    if isinstance(error, HatchwayError):
        return str(error)
    return error.format_message() if isinstance(error, click.ClickException) else f"{type(error).__name__}: {error}"
