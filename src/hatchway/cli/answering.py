"""Answering: `hatchway run TASK`. The answer on stdout, what led to it on stderr; or every event as a line of JSON."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from hatchway.agent.human import HUMAN
from hatchway.cli.accounts import Account, JsonAccount, TextAccount
from hatchway.cli.agent_options import AgentOptions
from hatchway.cli.agent_setup import NO_MODEL, Setup, load_model, prepare, started
from hatchway.cli.attachments import attached
from hatchway.cli.display import neutral
from hatchway.cli.exits import Exit, exit_for
from hatchway.cli.logs import logging_to
from hatchway.cli.prompt import BARE_NO, Asker, NotApproved, asking, nobody
from hatchway.cli.recording import Recording
from hatchway.cli.terminal import find_terminal
from hatchway.cli.tui.asked import QUIT
from hatchway.core.decisions import Allow, Decision, Deny
from hatchway.core.errors import InvalidSetting
from hatchway.core.events import AgentEvent, ApprovalRequest

if TYPE_CHECKING:
    from hatchway.agent.agent import Agent


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
            if decision == Deny(BARE_NO):
                decision = Deny()  # the agent ends the turn at a no without a reason
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
