"""`hatchway runs`: the runs a journal knows, newest first."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import click

from hatchway.cli.options import journal_option, json_option

if TYPE_CHECKING:
    from hatchway.journal.entries import RunRow, RunState
    from hatchway.journal.store import Journal

STATES = ("running", "paused", "in_doubt", "interrupted", "done", "failed")
STYLES = {
    "running": "cyan",
    "paused": "yellow",
    "in_doubt": "bold yellow",
    "interrupted": "magenta",
    "done": "green",
    "failed": "red",
}
NEXT = {
    "paused": ("decide about calls that wait", "approve RUN"),
    "in_doubt": ("say whether calls ran", "resume RUN"),
    "interrupted": ("go on with what stopped", "resume RUN"),
}
"""What a person can do about runs in a state, told once below the list."""


@click.command()
@click.option("--state", type=click.Choice(STATES), help="Only runs in this state.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="At most so many."
)
@journal_option
@json_option
def runs(state: str | None, limit: int, journal: str, as_json: bool) -> None:
    """List the runs of a journal, newest first.

    RUN is named in other commands by its id or by the beginning of it.

    \b
    States:
      running      somebody drives it just now
      paused       calls wait for a decision: approve, deny
      in_doubt     a crash left calls that may have run: resume asks
      interrupted  its process ended or died: resume goes on
      done, failed it ended
    """
    from hatchway.cli.journals import open_journal

    with open_journal(journal) as opened:
        found = opened.runs(state=cast("RunState | None", state), limit=limit)
        if as_json:
            _print_objects(opened, found)
        else:
            _print(opened, found)


def _print_objects(journal: Journal, found: Sequence[RunRow]) -> None:
    from hatchway.cli.objects import print_json, run_object

    print_json([run_object(run) | _waiting(journal, run) for run in found])


def _waiting(journal: Journal, run: RunRow) -> dict[str, Any]:
    """The calls a run stands at, for runs that stand."""
    if run.state not in ("paused", "in_doubt"):
        return {}
    from hatchway.cli.objects import call_object
    from hatchway.journal.names import ArgumentNames

    history, names = journal.history(run.run_id), ArgumentNames(run.head.functions)
    waiting = history.pending if run.state == "paused" else history.in_doubt
    return {"calls": [call_object(call, names, in_doubt=run.state == "in_doubt") for call in waiting]}


def _print(journal: Journal, found: Sequence[RunRow]) -> None:
    from rich.text import Text

    from hatchway.cli.display import cut, make_console, neutral
    from hatchway.cli.journals import command, short, shown_place
    from hatchway.trace.text import elapsed_text

    console, now = make_console(), time.time()
    if not found:
        console.print(
            "no such run" if journal.runs(limit=1) else f"no run in {neutral(shown_place(journal.place))} yet"
        )
    for run in found:
        first = next((line.strip() for line in run.head.code.splitlines() if line.strip()), "")
        row = Text.assemble(
            (short(run), "bold"),
            ("  " + run.state.ljust(11), STYLES[run.state]),
            (f"  {elapsed_text(now - run.started_at):>9} ago", "dim"),
            f"  {neutral(run.sandbox):<9}  ",
            cut(neutral(first), 200).replace("\t", " "),
        )
        if console.is_terminal:
            row.truncate(console.width, overflow="ellipsis")
        console.print(row, soft_wrap=True)
    for state, (why, words) in NEXT.items():
        if console.is_terminal and any(run.state == state for run in found):
            console.print(Text(f"{why}: {command(words, journal)}", "dim"), soft_wrap=True)
