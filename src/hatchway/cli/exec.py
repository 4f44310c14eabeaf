"""`hatchway exec`: run one file of Python as an action."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import IO, TYPE_CHECKING

import click

from hatchway.cli.exits import MEANING
from hatchway.cli.granted import granted_options
from hatchway.cli.options import Seconds, journal_option, sandbox_option, yes_option

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from hatchway.cli.report import Report
    from hatchway.core.limits import Limits
    from hatchway.core.sandbox import CodeSandbox
    from hatchway.tools.functions import Tool

HELP = """Run FILE in a sandbox, its tool calls through the gate; '-' reads the code from stdin.

What the code prints goes to stdout, the value of its last expression follows; calls and questions go to stderr.

Every step is recorded in a journal. Where nobody can be asked, a call that needs approval pauses the run: decide with
`hatchway approve` or `deny` from any terminal, go on with `hatchway resume`.

\b
Exit codes:
"""
CODES = "\n".join(f"  {code.value:>3}  {meaning}" for code, meaning in MEANING.items())


@click.command("exec", help=HELP + CODES)
@click.argument("file", type=click.File("rb"))
@sandbox_option
@granted_options
@yes_option
@journal_option
@click.option("--no-journal", is_flag=True, help="Record nothing; a run that would pause is over.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
@click.option(
    "--timeout",
    type=Seconds(),
    default=30.0,
    metavar="SECONDS",
    show_default=True,
    help="Time the code itself may take.",
)
@click.pass_context
def exec_(
    ctx: click.Context,
    file: IO[bytes],
    tools: tuple[str, ...],
    sandbox: str,
    image: str | None,
    engine: str | None,
    packages: tuple[str, ...],
    images: str | None,
    yes: bool,
    journal: str,
    no_journal: bool,
    as_json: bool,
    timeout: float,
) -> None:
    """Run one file of Python as an action."""
    # imported here: completion and --help read this file too, and stay quick
    from hatchway.cli.granted import granted_sandbox, offered_tools
    from hatchway.cli.pictures import Pictures
    from hatchway.cli.report import JsonReport, TextReport
    from hatchway.cli.resuming import next_commands
    from hatchway.core.limits import Limits

    pictures = Pictures(images)
    report = JsonReport(pictures) if as_json else TextReport(pictures)
    report.more_time = "give it more with --timeout SECONDS, or let the code do less"
    with report, next_commands(journal, tools, packages, run_id=lambda: "" if no_journal else report.standing):
        code = _source(file)
        offered = offered_tools(tools)
        where = granted_sandbox(sandbox, packages, image=image, engine=engine)
        running = _run(
            where, offered, Limits(wall_seconds=timeout), None if no_journal else journal, code, report,
            yes=yes, stdin_is_code=file.name == "<stdin>",
        )  # fmt: skip
        asyncio.run(running)
    ctx.exit(report.exit)


def _source(file: IO[bytes]) -> str:
    try:
        return file.read().decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise click.UsageError(f"{file.name} is not UTF-8: byte 0x{e.object[e.start]:02x} at {e.start}") from None


async def _run(
    where: CodeSandbox | str,
    offered: Sequence[Tool | Callable[..., Any]],
    limits: Limits,
    journal: str | None,
    code: str,
    report: Report,
    *,
    yes: bool,
    stdin_is_code: bool,
) -> None:
    from hatchway.cli.journals import new_journal
    from hatchway.cli.prompt import Listener, asking, drive, nobody, run_or_pause
    from hatchway.mode.mode import CodeMode

    with asking(yes=yes, otherwise=nobody, stdin_is_code=stdin_is_code) as ask, Listener(report.take) as listener:
        pauses = ask is nobody and journal is not None
        opened = None if journal is None else new_journal(journal, otherwise=", or record nothing with --no-journal")
        on_event = listener if pauses else None
        mode = CodeMode(where, tools=offered, limits=limits, journal=opened, on_event=on_event)
        async with nullcontext() if isinstance(where, str) else where, mode:
            await (run_or_pause(mode, code) if pauses else drive(mode, code, report.take, ask))
