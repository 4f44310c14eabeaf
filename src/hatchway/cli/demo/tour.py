"""The tour: a scripted model, but a real sandbox, real tools and a real question."""

from __future__ import annotations

import time
from collections.abc import Mapping
from importlib.resources import files

from rich.console import Console
from rich.panel import Panel

from hatchway.cli.command_name import command_name
from hatchway.cli.demo.tools import RULES, TOOLS
from hatchway.cli.display import code_block, make_console, print_line
from hatchway.cli.prompt import Asker, asking, drive
from hatchway.cli.view import View
from hatchway.core.decisions import Decision, Deny
from hatchway.core.events import AgentEvent, ApprovalRequest, CodeExecutionOutput, RunFailed
from hatchway.mode.mode import CodeMode
from hatchway.testing.scripted import Reply, ScriptedModel


async def tour(sandbox: str, *, yes: bool) -> None:
    """Show everything once; without a terminal and without `yes`, what asks is refused."""
    console = make_console()
    with asking(yes=yes, otherwise=_decline) as ask:
        async with CodeMode(sandbox, tools=TOOLS, rules=RULES) as mode:
            await _converse(console, mode, ask)
    if ask is _decline:
        print_line(
            console, ("There is no terminal to ask at, so the booking was refused: --yes allows it.\n", "yellow")
        )
    _say_what_next(console)


async def _decline(request: ApprovalRequest) -> Decision:
    return Deny("nobody is there to ask")


async def _converse(console: Console, mode: CodeMode, ask: Asker) -> None:
    task, replies = story()
    model, messages = ScriptedModel(replies), [task]
    where = f"sandbox {mode.sandbox.name}, wall: {mode.sandbox.tier}"
    print_line(console, ("Hatchway demo", "bold"), (f"  scripted model · real {where}\n", "dim"))
    print_line(console, ("you    ", "bold cyan"), task)
    while True:
        reply = await model.reply(messages)
        print_line(console, ("\nmodel  ", "bold magenta"), reply.text)
        if not reply.code:
            break
        messages.append(await _act(console, mode, reply.code, ask))
    console.print()


async def _act(console: Console, mode: CodeMode, code: str, ask: Asker) -> str:
    """Run one action and show it; what the model is told about it."""
    console.print(Panel(code_block(code), border_style="dim", title="action", title_align="left"))
    view, told, started = View(console), list[str](), time.monotonic()

    def show(event: AgentEvent) -> None:
        view.show(event)
        told.extend(_told(event))

    await drive(mode, code, show, ask)
    print_line(console, (f"  {time.monotonic() - started:.2f} s", "dim"))
    return "\n".join(told)


def _told(event: AgentEvent) -> list[str]:
    match event:
        case CodeExecutionOutput(text=text):
            return [text or "done"]
        case RunFailed(error=error):
            return [str(error)]
        case _:
            return []


def story() -> tuple[str, list[Reply]]:
    """What the person asks for, and what the model replies, turn by turn."""
    text = (files("hatchway.cli.demo") / "story.md").read_text(encoding="utf-8")
    task, *replies = [part.strip() for part in text.split("\n---\n")]
    return task, [_reply(part) for part in replies]


def _reply(part: str) -> Reply:
    text, _, fenced = part.partition("```python\n")
    return Reply(text=text.strip(), code=fenced.removesuffix("```").strip())


def _say_what_next(console: Console) -> None:
    name = command_name()
    steps: Mapping[str, str] = {
        f"{name} doctor": "which sandboxes work on this machine",
        f"echo 'sum(range(10))' | {name} exec -": "run code of your own",
        f"{name} conformance monty": "hold a sandbox against the contract",
    }
    width = max(len(step) for step in steps)
    print_line(console, "Try next:")
    for step, why in steps.items():
        print_line(console, "  ", (f"{step:<{width}}", "bold"), (f"  {why}", "dim"))
