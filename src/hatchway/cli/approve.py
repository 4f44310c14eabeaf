"""`hatchway approve`: allow calls that wait, as they are or with other arguments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from hatchway.cli.options import journal_option, run_argument
from hatchway.cli.resume import resume_options

if TYPE_CHECKING:
    from hatchway.core.decisions import Decision
    from hatchway.journal.entries import RunRow
    from hatchway.journal.history import JournaledCall

Scope = Literal["call", "run", "always"]


@click.command()
@run_argument
@click.argument("calls", metavar="[CALL]...", nargs=-1)
@click.option(
    "--edit",
    "edits",
    multiple=True,
    metavar="NAME=VALUE",
    help="Run the call with this argument instead; VALUE is JSON, or else text.",
)
@click.option(
    "--for",
    "scope",
    type=click.Choice(["call", "run", "always"]),
    default="call",
    show_default=True,
    help="Allow this call, all calls of the tool in this run, or all there will ever be.",
)
@journal_option
@resume_options
@click.pass_context
def approve(
    ctx: click.Context,
    run: str,
    calls: tuple[str, ...],
    edits: tuple[str, ...],
    scope: Scope,
    journal: str,
    **resuming: Any,
) -> None:
    """Allow calls that wait: all that are undecided, or those named by CALL.

    The decision is stored in the journal, and `hatchway resume` goes on with it. What you saw is what runs: the
    arguments are compared with those that were shown.

    \b
    Exit codes:
      0  the decision is stored (with --resume: as `hatchway resume` says)
      2  no such run, journal or pending call
      8  somebody drives the run just now
    """
    from hatchway.cli.deciding import chosen, decide, say_next
    from hatchway.cli.journals import find_run, open_journal
    from hatchway.cli.resume import resume

    with open_journal(journal) as opened:
        found = find_run(opened, run)
        waiting = chosen(opened, found, calls)
        decide(opened, found, _decisions(found, waiting, edits, scope), waiting)
        if not resuming["resume"]:
            say_next(opened, found)
    if resuming.pop("resume"):
        ctx.invoke(resume, run=found.run_id, journal=journal, **resuming)


def _decisions(
    run: RunRow, waiting: Sequence[JournaledCall], edits: Sequence[str], scope: Scope
) -> dict[str, Decision]:
    from hatchway.core.decisions import Allow, Edit
    from hatchway.journal.names import ArgumentNames

    if not edits:
        return {call.call.call_id: Allow(scope) for call in waiting}
    if scope != "call":
        raise click.UsageError("--edit is about one call: without --for")
    if len(waiting) != 1:
        ids = ", ".join(call.call.call_id for call in waiting)
        raise click.UsageError(f"--edit changes one call: name one of {ids}")
    call = ArgumentNames(run.head.functions).named(waiting[0].call)
    if call.args:
        raise click.UsageError("--edit needs the names of all arguments, and the journal has some without")
    return {call.call_id: Edit(_edited(call.kwargs, dict(map(_edit, edits))))}


def _edit(text: str) -> tuple[str, Any]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise click.UsageError(f"--edit takes NAME=VALUE, not {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _edited(arguments: Any, changes: dict[str, Any]) -> dict[str, Any]:
    from hatchway.journal.entries import REDACTED

    changed = {**arguments, **changes}
    if hidden := [name for name, value in changed.items() if value == REDACTED]:
        raise click.UsageError(f"the journal does not know {', '.join(hidden)}: give it with --edit too")
    return changed
