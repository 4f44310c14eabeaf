"""`hatchway replay`: run a run again from the journal, no tool called, and say whether it went the same way."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from hatchway.cli.options import complete_sandbox, journal_option, json_option, run_argument

if TYPE_CHECKING:
    from hatchway.core.sandbox import CodeSandbox
    from hatchway.journal.entries import RunRow
    from hatchway.journal.store import Journal
    from hatchway.mode.replaying import Difference, Replayed

SHOWN_CHARACTERS = 2000


@click.command()
@run_argument
@click.option("--sandbox", metavar="NAME", shell_complete=complete_sandbox, help="Default: that of the run.")
@journal_option
@json_option
@click.pass_context
def replay(ctx: click.Context, run: str, sandbox: str | None, journal: str, as_json: bool) -> None:
    """Run a run again from the journal, no tool called.

    Each call gets the answer it got before. A run that has not ended is led to where it stands.

    \b
    Exit codes:
      0  it went as before: same calls, same result, same output, same files
      2  there is no such run or journal
      3  the sandbox is unavailable or crashed
      7  it went another way (the first difference is shown), or it cannot be run again
    """
    from hatchway.cli.exits import Exit
    from hatchway.cli.granted import granted_sandbox
    from hatchway.cli.journals import check_runs_here, command, find_run, open_journal
    from hatchway.cli.objects import print_json

    with open_journal(journal) as opened:
        found = find_run(opened, run)
        check_runs_here(found, command(f"show {found.run_id}", opened))
        replayed = asyncio.run(_replay(granted_sandbox(sandbox or found.sandbox, ()), opened, found))
    if as_json:
        print_json({**asdict(replayed), "same": replayed.difference is None})
    else:
        _print(found, replayed)
    ctx.exit(Exit.DONE if replayed.difference is None else Exit.REFUSED)


async def _replay(where: CodeSandbox | str, journal: Journal, run: RunRow) -> Replayed:
    from contextlib import nullcontext

    from hatchway.mode.replaying import replay_run
    from hatchway.sandboxes.registry import shared_sandbox

    async with shared_sandbox(where) if isinstance(where, str) else nullcontext(where) as sandbox:
        return await replay_run(journal, run, sandbox)


def _print(run: RunRow, replayed: Replayed) -> None:
    from hatchway.cli.display import make_console, print_line
    from hatchway.trace.wording import how_many

    console = make_console()
    if replayed.difference is not None:
        print_line(console, ("✗ it went another way", "bold red"))
        _print_difference(replayed.difference)
        return
    where = f"; it stands at {how_many(replayed.standing)}, as before" if run.ending is None else ", same end"
    told = f": {how_many(replayed.calls)} answered from the journal, no tool called{where}"
    print_line(console, ("✓ the same", "bold green"), told)


def _print_difference(difference: Difference) -> None:
    from hatchway.cli.display import cut, make_console, neutral, print_line

    console = make_console()
    line = f" (line {difference.line} of the code)" if difference.line else ""
    print_line(console, f"first difference: {difference.what}{line}")
    for label, text in (("expected", difference.expected), ("actual", difference.actual)):
        print_line(console, (f"  {label:<8}  ", "dim"), cut(neutral(text), SHOWN_CHARACTERS))
