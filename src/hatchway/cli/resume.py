"""`hatchway resume`: go on with a run that stands, in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hatchway.cli.exits import MEANING
from hatchway.cli.granted import granted_options
from hatchway.cli.options import complete_sandbox, journal_option, run_argument, yes_option

if TYPE_CHECKING:
    from hatchway.cli.report import Report
    from hatchway.core.decisions import Settlement
    from hatchway.journal.entries import RunRow
    from hatchway.journal.store import Journal

F = TypeVar("F", bound=Callable[..., Any])

HELP = """Go on with a run that stands: paused, in doubt, or interrupted.

Its code is led back to where it stood, with the answers it had: what ran does not run again. It needs its tools, given
as to `hatchway exec`. Calls that wait are asked about, unless they were decided or --yes is given; a call that a crash
left in doubt is never guessed about. A run that has ended gives its result again.

\b
Exit codes:
"""
CODES = "\n".join(f"  {code.value:>3}  {meaning}" for code, meaning in MEANING.items())
sandbox_option = click.option(
    "--sandbox", metavar="NAME", shell_complete=complete_sandbox, help="As `exec`; default: that of the run."
)


def resume_options(command: F) -> F:
    """`--resume`, and what it needs, for the commands that decide."""
    for option in (yes_option, granted_options, sandbox_option):
        command = option(command)
    return click.option("--resume", is_flag=True, help="Go on with the run at once; it needs --tools.")(command)


@click.command(help=HELP + CODES)
@run_argument
@sandbox_option
@granted_options
@yes_option
@click.option("--ran", multiple=True, metavar="CALL[=JSON]", help="This call in doubt did run, and gave this value.")
@click.option("--not-run", multiple=True, metavar="CALL", help="This call in doubt did not run: run it now.")
@journal_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
@click.pass_context
def resume(
    ctx: click.Context,
    run: str,
    journal: str,
    sandbox: str | None = None,
    tools: tuple[str, ...] = (),
    packages: tuple[str, ...] = (),
    image: str | None = None,
    engine: str | None = None,
    images: str | None = None,
    yes: bool = False,
    ran: tuple[str, ...] = (),
    not_run: tuple[str, ...] = (),
    as_json: bool = False,
) -> None:
    """Go on with a run that stands."""
    from hatchway.cli.granted import granted_sandbox, offered_tools
    from hatchway.cli.journals import check_runs_here, find_run, open_journal, resume_command
    from hatchway.cli.pictures import Pictures
    from hatchway.cli.report import JsonReport, TextReport
    from hatchway.cli.resuming import next_commands
    from hatchway.core.events import CallStarted

    pictures = Pictures(images)
    report = JsonReport(pictures) if as_json else TextReport(pictures)
    with (
        report,
        next_commands(journal, tools, packages, run_id=lambda: report.standing),
        open_journal(journal) as opened,
    ):
        found = find_run(opened, run)
        for event in opened.events(found.run_id):
            if as_json or isinstance(event, CallStarted):  # what a call was made with is told with its outcome
                report.take(event)
        if found.ending is not None:
            if not as_json:
                _tell_end(opened, found, report)
        else:
            check_runs_here(found, resume_command(found, opened))
            report.standing = found.run_id
            where = granted_sandbox(sandbox or found.sandbox, packages, image=image, engine=engine)
            asyncio.run(_go_on(where, offered_tools(tools), opened, found, _known(ran, not_run), report, yes=yes))
    ctx.exit(report.exit)


def _tell_end(journal: Journal, run: RunRow, report: Report) -> None:
    """What an ended run gave: its output and its end, without the calls on the way."""
    from hatchway.core.events import CodeExecutionOutput, CodeExecutionOutputChunk, RunFailed

    for event in journal.events(run.run_id):
        if isinstance(event, CodeExecutionOutputChunk | CodeExecutionOutput | RunFailed):
            report.take(event)
    click.echo(f"run {run.run_id} had ended already: nothing was run", err=True)


def _known(ran: Sequence[str], not_run: Sequence[str]) -> dict[str, Settlement]:
    from hatchway.core.decisions import NotRun, Ran

    known: dict[str, Settlement] = {call_id: NotRun() for call_id in not_run}
    for text in ran:
        call_id, given, value = text.partition("=")
        try:
            known[call_id] = Ran(json.loads(value) if given else None)
        except ValueError:
            raise click.UsageError(f"--ran {text}: what follows = must be JSON, such as {call_id}='\"text\"'") from None
    return known


async def _go_on(
    where: Any,
    offered: Any,
    journal: Journal,
    run: RunRow,
    known: Mapping[str, Settlement],
    report: Report,
    *,
    yes: bool,
) -> None:
    from hatchway.cli.display import make_console
    from hatchway.cli.prompt import Listener, Person, nobody, say_yes
    from hatchway.cli.resuming import Witness, go_on
    from hatchway.cli.terminal import find_terminal
    from hatchway.mode.mode import CodeMode

    with ExitStack() as stack:
        listener = stack.enter_context(Listener(report.take))
        mode = CodeMode(where, tools=offered, journal=journal, on_event=listener)
        terminal = find_terminal()
        if terminal is not None:
            stack.enter_context(terminal)
        console = make_console(stderr=True)
        person = nobody if terminal is None else Person(terminal, console)
        settle = None if terminal is None else Witness(terminal, console)
        async with nullcontext() if isinstance(where, str) else where, mode:
            await go_on(mode, run.run_id, known, say_yes if yes else person, settle)
