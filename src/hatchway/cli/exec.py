"""`hatchway exec`: run one file of Python as an action."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from typing import IO

import click

from hatchway.cli.display import make_console
from hatchway.cli.exits import MEANING
from hatchway.cli.options import sandbox_option, yes_option
from hatchway.cli.prompt import Asker, Person, nobody, say_yes
from hatchway.cli.report import JsonReport, Report, TextReport
from hatchway.cli.terminal import find_terminal
from hatchway.cli.tool_modules import Offered, import_from_here, load_tools
from hatchway.core.events import ApprovalRequest
from hatchway.core.limits import Limits
from hatchway.mode.mode import CodeMode

HELP = """Run FILE in a sandbox, its tool calls through the gate; '-' reads the code from stdin.

What the code prints goes to stdout, the value of its last expression follows; calls and questions go to stderr.

\b
Exit codes:
"""
CODES = "\n".join(f"  {code.value:>3}  {meaning}" for code, meaning in MEANING.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the command line asked for."""

    code: str
    tools: Sequence[Offered]
    sandbox: str
    limits: Limits
    yes: bool
    stdin_is_code: bool


@click.command("exec", help=HELP + CODES)
@click.argument("file", type=click.File("rb"))
@click.option("--tools", multiple=True, metavar="MODULE|FILE.py", help="Offer the functions in it to the code.")
@sandbox_option
@yes_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    metavar="SECONDS",
    show_default=True,
    help="Time the code itself may take.",
)
@click.pass_context
def exec_(
    ctx: click.Context, file: IO[bytes], tools: tuple[str, ...], sandbox: str, yes: bool, as_json: bool, timeout: float
) -> None:
    """Run one file of Python as an action."""
    if ":" in sandbox:
        import_from_here()
    report = JsonReport() if as_json else TextReport()
    with report:
        job = Job(
            code=_source(file),
            tools=[tool for source in tools for tool in load_tools(source)],
            sandbox=sandbox,
            limits=Limits(wall_seconds=timeout),
            yes=yes,
            stdin_is_code=file.name == "<stdin>",
        )
        asyncio.run(_run(job, report))
    ctx.exit(report.exit)


def _source(file: IO[bytes]) -> str:
    try:
        return file.read().decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise click.UsageError(f"{file.name} is not UTF-8: byte 0x{e.object[e.start]:02x} at {e.start}") from None


async def _run(job: Job, report: Report) -> None:
    with ExitStack() as stack:
        ask = _asker(job, stack)
        async with CodeMode(job.sandbox, tools=job.tools, limits=job.limits) as mode:
            async with aclosing(mode.stream(job.code)) as events:
                async for event in events:
                    report.take(event)
                    if isinstance(event, ApprovalRequest):
                        event.approve(await ask(event))


def _asker(job: Job, stack: ExitStack) -> Asker:
    if job.yes:
        return say_yes
    terminal = find_terminal(stdin_is_code=job.stdin_is_code)
    return Person(stack.enter_context(terminal), make_console(stderr=True)) if terminal else nobody
