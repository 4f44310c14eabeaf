"""`hatchway deny`: refuse calls that wait; the code sees the reason."""

from __future__ import annotations

import click

from hatchway.cli.options import journal_option, run_argument


@click.command()
@run_argument
@click.argument("calls", metavar="[CALL]...", nargs=-1)
@click.option("--reason", default="the person said no", show_default=True, metavar="TEXT", help="Told to the code.")
@journal_option
def deny(run: str, calls: tuple[str, ...], reason: str, journal: str) -> None:
    """Refuse calls that wait: all that are undecided, or those named by CALL.

    The code sees ToolDenied with the reason at the call, once the run goes on.

    \b
    Exit codes:
      0  the decision is stored
      2  no such run, journal or pending call
      8  somebody drives the run just now
    """
    from hatchway.cli.deciding import chosen, decide, say_next
    from hatchway.cli.journals import find_run, open_journal
    from hatchway.core.decisions import Deny

    with open_journal(journal) as opened:
        found = find_run(opened, run)
        waiting = chosen(opened, found, calls)
        decide(opened, found, {call.call.call_id: Deny(reason) for call in waiting}, waiting)
        say_next(opened, found)
