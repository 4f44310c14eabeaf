"""`hatchway demo`: a scripted model, but a real sandbox, real tools and a real question."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from contextlib import aclosing
from importlib.resources import files
from pathlib import Path

import click
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from hatchway.cli.demo.tools import RULES, TOOLS
from hatchway.cli.display import code_block, make_console
from hatchway.cli.options import sandbox_option, yes_option
from hatchway.cli.prompt import Asker, Person, say_yes
from hatchway.cli.terminal import find_terminal
from hatchway.cli.view import View
from hatchway.core.decisions import Decision, Deny
from hatchway.core.events import AgentEvent, ApprovalRequest, CodeExecutionOutput, RunFailed
from hatchway.mode.mode import CodeMode
from hatchway.testing.scripted import Reply, ScriptedModel


@click.command()
@yes_option
@sandbox_option
def demo(yes: bool, sandbox: str) -> None:
    """See it work: no key, no network, a few seconds.

    A scripted model writes two actions. They run in a real sandbox and call real tools: four at once, one that fails
    and is recovered from, one that a rule denies, one that asks you first.
    """
    console = make_console()
    terminal = None if yes else find_terminal()
    ask: Asker = say_yes if yes else Person(terminal, console) if terminal else _decline
    asyncio.run(_converse(console, ask, sandbox))
    if ask is _decline:
        console.print("There is no terminal to ask at, so the booking was refused: --yes allows it.\n", style="yellow")
    _say_what_next(console)


async def _decline(request: ApprovalRequest) -> Decision:
    return Deny("nobody is there to ask")


async def _converse(console: Console, ask: Asker, sandbox: str) -> None:
    task, replies = _story()
    model, messages = ScriptedModel(replies), [task]
    async with CodeMode(sandbox, tools=TOOLS, rules=RULES) as mode:
        where = f"sandbox {mode.sandbox.name}, wall: {mode.sandbox.tier}"
        console.print(Text.assemble(("Hatchway demo", "bold"), (f"  scripted model · real {where}\n", "dim")))
        console.print(Text.assemble(("you    ", "bold cyan"), task))
        while (reply := await model.reply(messages)).code:
            _say(console, reply.text)
            messages.append(await _act(console, mode, reply.code, ask))
    _say(console, reply.text)
    console.print()


def _say(console: Console, text: str) -> None:
    console.print(Text.assemble(("\nmodel  ", "bold magenta"), text))


async def _act(console: Console, mode: CodeMode, code: str, ask: Asker) -> str:
    """Run one action and show it; what the model is told about it."""
    console.print(Panel(code_block(code), border_style="dim", title="action", title_align="left"))
    view, started, told = View(console), time.monotonic(), ""
    async with aclosing(mode.stream(code)) as events:
        async for event in events:
            view.show(event)
            if isinstance(event, ApprovalRequest):
                event.approve(await ask(event))
            told = _told(event) or told
    console.print(f"  {time.monotonic() - started:.2f} s", style="dim")
    return told


def _told(event: AgentEvent) -> str:
    match event:
        case CodeExecutionOutput(text=text):
            return text or "done"
        case RunFailed(error=error):
            return str(error)
        case _:
            return ""


def _story() -> tuple[str, list[Reply]]:
    text = (files("hatchway.cli.demo") / "story.md").read_text(encoding="utf-8")
    task, *replies = [part.strip() for part in text.split("\n---\n")]
    return task, [_reply(part) for part in replies]


def _reply(part: str) -> Reply:
    text, _, fenced = part.partition("```python\n")
    return Reply(text=text.strip(), code=fenced.removesuffix("```").strip())


def _say_what_next(console: Console) -> None:
    name = command_name()
    steps = {
        f"{name} doctor": "which sandboxes work on this machine",
        f"echo 'sum(range(10))' | {name} exec -": "run code of your own",
        f"{name} conformance monty": "hold a sandbox against the contract",
    }
    width = max(len(step) for step in steps)
    lines = [Text.assemble("  ", (f"{step:<{width}}", "bold"), (f"  {why}", "dim")) for step, why in steps.items()]
    console.print(Text("\n").join([Text("Try next:"), *lines]))


def command_name() -> str:
    """How this very installation is called from the directory the user is in."""
    script = Path(sys.executable).with_name("hatchway")
    found = shutil.which("hatchway")
    if found and Path(found).resolve() == script.resolve():
        return "hatchway"
    return min(os.path.relpath(script), str(script), key=len) if script.exists() else "python -m hatchway"
