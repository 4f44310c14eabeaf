"""`hatchway deny`: refuse calls that wait; the code sees the reason."""

from __future__ import annotations

from typing import Any

import click

from hatchway.cli.options import journal_option, run_argument
from hatchway.cli.resume import resume_options


@click.command()
@run_argument
@click.argument("calls", metavar="[CALL]...", nargs=-1)
@click.option("--reason", default="the person said no", show_default=True, metavar="TEXT", help="Told to the code.")
@journal_option
@resume_options
@click.pass_context
def deny(ctx: click.Context, run: str, calls: tuple[str, ...], reason: str, journal: str, **resuming: Any) -> None:
    """Refuse calls that wait: all that are undecided, or those named by CALL.

    The code sees ToolDenied with the reason at the call, once the run goes on.

    \b
    Exit codes:
      0  the decision is stored (with --resume: as `hatchway resume` says)
      2  no such run, journal or pending call
      8  somebody drives the run just now
    """
    from hatchway.cli.deciding import chosen, decide, say_next
    from hatchway.cli.journals import find_run, open_journal
    from hatchway.cli.resume import resume
    from hatchway.core.decisions import Deny

    with open_journal(journal) as opened:
        found = find_run(opened, run)
        waiting = chosen(opened, found, calls)
        decide(opened, found, {call.call.call_id: Deny(reason) for call in waiting}, waiting)
        if not resuming["resume"]:
            say_next(opened, found)
    if resuming.pop("resume"):
        ctx.invoke(resume, run=found.run_id, journal=journal, **resuming)
