"""Answering: `hatchway run TASK`. The answer on stdout, what led to it on stderr; or every event as a line of JSON."""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, cast

import click

from hatchway.agent.human import HUMAN
from hatchway.cli.accounts import Account, CodeAccount, JsonAccount, TextAccount
from hatchway.cli.agent_answers import AgentAnswers, Left, LineFields, terminal_to_ask
from hatchway.cli.agent_options import AgentOptions
from hatchway.cli.agent_setup import NO_MODEL, Setup, load_model, prepare, started
from hatchway.cli.attachments import attached
from hatchway.cli.display import make_console, neutral
from hatchway.cli.exits import Exit, exit_for
from hatchway.cli.logs import logging_to
from hatchway.cli.recording import Recording
from hatchway.cli.terminal import find_terminal
from hatchway.cli.tui.asked import QUIT
from hatchway.cli.tui.first_run import chosen
from hatchway.cli.tui.words import Words, is_word
from hatchway.core.decisions import Allow, Later
from hatchway.core.errors import ApprovalRequired, InvalidSetting
from hatchway.core.events import AgentEvent, ApprovalRequest

if TYPE_CHECKING:
    from hatchway.agent.agent import Agent


async def answer(
    prompts: AsyncIterator[str], options: AgentOptions, *, as_json: bool = False, is_talk: bool = False
) -> Exit:
    """Answer prompts, one after the other, and end; how it ended. A talk goes on after a turn that fails.

    Raises:
        InvalidSetting: The recording cannot be written.
    """
    recording = Recording(options.record_dir, options.record_title) if options.record else None
    if recording is not None:
        recording.write()  # before the model is asked: what it says could not be recorded any more
    account: Account = JsonAccount(recording) if as_json else TextAccount(recording)
    agent: Agent | None = None
    session: int | None = None
    logs = logging_to(partial(click.echo, nl=False, err=True), options.log_level)
    try:
        setup = await asyncio.to_thread(prepare, options)
        name = setup.choice.model or await _first_run(setup, is_talk=is_talk)
        if name is None:
            return Exit.DONE
        setup = replace(setup, choice=replace(setup.choice, model=name))
        if name == HUMAN and not as_json:
            account = CodeAccount(recording)
        if not (as_json or options.model or setup.config.model or setup.choice.model is None):
            click.echo(f"model: {neutral(name)}, because {neutral(setup.choice.why)}", err=True)
        for warning in () if as_json else setup.warnings:
            click.echo(f"warning: {neutral(warning)}", err=True)
        model = await asyncio.to_thread(load_model, name, setup.choice)
        with terminal_to_ask(yes=options.yes, stdin_is_task=not sys.stdin.isatty()) as terminal, logs:
            async with started(setup, model) as (agent, permissions):
                session = None if agent.conversation is None else agent.conversation.number
                answers = AgentAnswers(terminal, permissions, yes=options.yes)
                await _Turns(agent, setup, account, answers, is_talk=is_talk).take(prompts)
    except ApprovalRequired as e:
        account.exit = exit_for(e)
        account.failed(_paused(e, session, options))
    except Exception as e:  # whatever a vendor's library raises is told, and is no traceback
        account.exit = exit_for(e)
        account.failed(e)
    account.end(agent)
    for path in recording.write() if recording is not None else ():
        click.echo(f"recorded {neutral(str(path))}", err=True)
    return account.exit


async def _first_run(setup: Setup, *, is_talk: bool) -> str | None:
    """The model that somebody takes who has none; None when they saw the demo, or left.

    Raises:
        InvalidSetting: Nobody is there to choose.
    """
    terminal = find_terminal() if is_talk else None
    if terminal is None:
        raise InvalidSetting(f"there is no model: {setup.choice.why}", hint=NO_MODEL)
    from hatchway.cli.demo.tour import tour

    fields = LineFields(terminal, make_console(stderr=True))
    try:
        choice = await chosen(fields, setup.choice.why, get_terminal_size().columns)
    except Left:
        return None
    if choice == "demo":
        await tour("auto", yes=False)
    return HUMAN if choice == "human" else None


async def once(prompt: str) -> AsyncIterator[str]:
    """One prompt; an empty one is none."""
    if prompt:
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


class _Turns:
    """The turns of one conversation, told as they go."""

    def __init__(
        self, agent: Agent, setup: Setup, account: Account, answers: AgentAnswers, *, is_talk: bool = False
    ) -> None:
        self._agent, self._setup, self._account, self._answers = agent, setup, account, answers
        self._is_human, self._is_talk = setup.choice.model == HUMAN, is_talk

    async def take(self, prompts: AsyncIterator[str]) -> None:
        """First what was left open, then each prompt.

        Raises:
            ApprovalRequired: Something waits for a decision, and nobody is there.
        """
        if self._is_talk:
            return await self._talk(prompts)
        is_idle = False
        if self._setup.options.goes_on or self._setup.options.session:
            is_idle = not await self._follow(self._agent.resume(), "")
            self._account.end_turn()
        async for prompt in prompts:
            is_idle = False
            await self._turn(prompt)
        if is_idle:
            click.echo("nothing was left open in this conversation, and there is no task", err=True)

    async def _talk(self, prompts: AsyncIterator[str]) -> None:
        """A conversation by lines: nothing that is typed, and nothing that fails, ends it."""
        from hatchway.cli.line_words import HELLO, LineTeller, line_words
        from hatchway.cli.tui.earlier import last_exchange

        words = line_words(self._agent, self._setup)
        click.echo(HELLO, err=True)
        if self._agent.messages:
            LineTeller().show(last_exchange(self._agent.messages))
            await self._told(self._follow(self._agent.resume(), ""))
            self._account.end_turn()
        async for prompt in prompts:
            await self._told(self._word_or_turn(words, prompt))
        self._account.exit = Exit.DONE  # the person left: how single turns ended was told

    async def _word_or_turn(self, words: Words, prompt: str) -> None:
        text = words.take(prompt) if is_word(prompt) else prompt
        if text is not None:
            await self._turn(text)

    async def _told(self, turn: Coroutine[Any, Any, Any]) -> None:
        """Let a turn come to its end, whatever that is; Ctrl+C cancels it.

        Raises:
            ApprovalRequired: Something waits for a decision, and nobody is there any more.
        """
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, lambda: asyncio.ensure_future(self._agent.cancel()))
        try:
            await turn
        except ApprovalRequired:
            raise
        except Exception as e:
            self._account.failed(e)
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    async def _turn(self, prompt: str) -> None:
        content: Any = prompt
        if not self._is_human:
            brought = await asyncio.to_thread(attached, prompt, Path.cwd())
            content = brought.content()
            for note in brought.notes if self._is_talk else ():
                click.echo(neutral(note), err=True)
        self._account.said(prompt)
        await self._follow(self._agent.stream(content), prompt)
        self._account.end_turn()

    async def _follow(self, events: AsyncIterator[AgentEvent], prompt: str) -> bool:
        """Tell each event; whether there was one. What comes while somebody thinks about a question waits for that."""
        is_told = False
        async with aclosing(cast("AsyncGenerator[AgentEvent]", events)) as stream:
            async for event in stream:
                is_told = True
                if not isinstance(event, ApprovalRequest):
                    self._account.take(event)
                elif event.is_open:
                    await self._settle(event, prompt)
        return is_told

    async def _settle(self, request: ApprovalRequest, prompt: str) -> None:
        is_own = self._is_human and request.kind == "code" and request.tool_args.get("code") == prompt
        if is_own or self._answers.allows(request):
            self._account.allowed(request, is_shown=is_own)
            return request.approve(Allow())
        self._account.take(request)
        decision = await self._answers.ask(request)
        if decision is None:
            return
        if not isinstance(decision, Later):
            self._account.decided(request, decision)
        request.approve(decision)


def _paused(error: ApprovalRequired, session: int | None, options: AgentOptions) -> ApprovalRequired:
    """The same, with what to type."""
    from hatchway.cli.journals import SHORT_ID, journal_words

    if session is not None:
        words = shlex.join(["--session", str(session), *options.words(), *journal_words(options.journal)])
        names = ", ".join(dict.fromkeys(neutral(call.function_name) for call in error.pending))
        error.message = f"paused: {names} needs approval, and nobody is here to give it"
        hints = [f"at a terminal: hatchway {words}", f"to allow everything: hatchway run --yes {words}"]
        if error.run_id:
            decide = shlex.join(["approve", error.run_id[:SHORT_ID], *journal_words(options.journal)])
            hints.append(f"to decide first: hatchway {decide} (or deny), then hatchway run {words}")
        error.hint = "\n".join(hints)
    return error
