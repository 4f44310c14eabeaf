"""`hatchway run`: the agent. With a task it answers and ends; without one it is a conversation at the terminal."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import click

from hatchway.cli.agent_options import AgentOptions, agent_options

HELP = """Run the agent: at the terminal, or once with TASK.

It acts by writing Python, which runs in a sandbox; every action and every call of a tool asks you first. Without TASK
it is a conversation: Enter sends, Alt+Enter is a newline, @path brings a file along, /help says the rest.

With TASK the answer goes to stdout and everything else to stderr; what is piped in is added to the task. With --json
each event is one line. Where nobody can be asked, what needs approval pauses the turn: it is kept, and -c or --session
goes on with it, at a terminal or with --yes, with another TASK or without one.

\b
Exit codes of a task:
  0    it was answered
  1    the model failed, or the turn did not come to its end
  2    the command line or the configuration is wrong, or no model is there
  3    the sandbox is unavailable or crashed
  4    somebody said no, and the turn is over
  5    something waits for approval, and nobody is there to give it
  8    another process has the conversation
  130  interrupted
"""


@click.command("run", help=HELP)
@click.argument("task", nargs=-1)
@agent_options
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON; needs TASK.")
@click.pass_context
def run(ctx: click.Context, task: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Run the agent."""
    if task and ctx.meta.get("hatchway.no_word"):
        raise click.UsageError(f"a command stands before its options, and a task is: hatchway run {task[0]!r}")
    options = AgentOptions(**given)
    if options.goes_on and options.session:
        raise click.UsageError("-c is the newest conversation, --session is a chosen one: give one of them")
    if options.session is not None and not options.session.strip():
        raise click.UsageError("--session is empty: give the number or the id of a conversation")
    if options.sandbox and not task and " " in options.sandbox:
        raise click.UsageError("--sandbox takes the word after it for a name: put TASK first, or say --sandbox auto")
    prompt = "\n\n".join(filter(None, [" ".join(task), _piped()]))
    goes_on = options.goes_on or bool(options.session)
    if not prompt and not goes_on and not _at_terminal():
        raise click.UsageError("there is no terminal and no task: hatchway run TASK")
    if prompt or (goes_on and (as_json or not _at_terminal())):
        with _extra_needed():
            from hatchway.cli.answering import answer, once

        ctx.exit(asyncio.run(answer(once(prompt), options, as_json=as_json)))
    if as_json:
        raise click.UsageError("--json needs a task: hatchway run --json TASK")
    if os.environ.get("TERM", "dumb") == "dumb":
        with _extra_needed():
            from hatchway.cli.answering import answer, typed

        ctx.exit(asyncio.run(answer(typed(), options, is_talk=True)))
    with _extra_needed():
        from hatchway.cli.tui.entry import converse

    ctx.exit(converse(options))


@contextmanager
def _extra_needed() -> Generator[None]:
    """Whatever of the agent's packages cannot be imported: say which extra has them."""
    try:
        yield
    except ImportError as e:
        from hatchway.core.errors import MissingExtra

        raise MissingExtra(f"{e.name}, which the agent needs,", "agent") from e


def _at_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _piped() -> str:
    """What comes in through a pipe or from a file; whatever else stdin may be, nobody means it as part of a task."""
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode)):
        return ""
    return sys.stdin.buffer.read().decode("utf-8", "replace").strip()
