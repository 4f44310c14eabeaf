"""Deciding: what `approve` and `deny` share. A decision is stored in the journal; `resume` goes on with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from hatchway.cli.display import call_text, make_console, neutral, print_line
from hatchway.cli.journals import command, resume_command, short
from hatchway.cli.standing import standing_line
from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import Decision, Edit
from hatchway.core.errors import InvalidSetting
from hatchway.journal.entries import RunRow
from hatchway.journal.history import JournaledCall
from hatchway.journal.names import ArgumentNames
from hatchway.journal.store import Journal
from hatchway.trace.wording import arguments, decision_words

SHOWN_CHARACTERS = 2000
"""How much of a call's arguments is told when it is decided about."""


def chosen(journal: Journal, run: RunRow, call_ids: Sequence[str]) -> list[JournaledCall]:
    """The pending calls of these ids; without any, all that nobody has decided about yet.

    Raises:
        InvalidSetting: The run does not stand at calls, or not at these.
    """
    if run.state != "paused":
        raise InvalidSetting(f"no call of run {short(run)} waits: it is {run.state}", hint=_next(journal, run))
    pending = {call.call.call_id: call for call in journal.history(run.run_id).pending}
    if strangers := [call_id for call_id in call_ids if call_id not in pending]:
        known = ", ".join(map(neutral, pending))
        raise InvalidSetting(
            f"{', '.join(map(neutral, strangers))}: no such pending call of run {short(run)}; pending: {known}",
            hint=command(f"show {short(run)}", journal),
        )
    found = [pending[call_id] for call_id in call_ids] or [c for c in pending.values() if c.decision is None]
    if not found:
        raise InvalidSetting(f"every pending call of run {short(run)} is decided", hint=resume_command(run, journal))
    return found


def decide(journal: Journal, run: RunRow, decisions: Mapping[str, Decision], calls: Sequence[JournaledCall]) -> None:
    """Store decisions and say what was decided, and what is left to do.

    Raises:
        RunTaken: Somebody drives the run just now.
        InvalidSetting: A call was decided by somebody else meanwhile.
    """
    try:
        journal.decide(run.run_id, decisions)
    except InvalidSetting as e:
        raise InvalidSetting(e.message, hint=command(f"show {short(run)}", journal)) from e
    console, names = make_console(stderr=True), ArgumentNames(run.head.functions)
    for call in calls:
        mark, _, said = decision_words(decisions[call.call.call_id], "you")
        what = _call_text(names.named(call.call))
        new = _changed(decisions[call.call.call_id], call.call)
        print_line(
            console, f"{mark} ", what, (f" {said}{new}", "bold"), (f"  call {neutral(call.call.call_id)}", "dim")
        )


def say_next(journal: Journal, run: RunRow) -> None:
    """Say where the run stands now."""
    if (line := standing_line(journal, run)) is not None:
        click.echo("".join(part.text for part in line.parts), err=True)


def _changed(decision: Decision, call: FunctionCall) -> str:
    return f" to {call_text(call.function_name, decision.args, SHOWN_CHARACTERS)}" if isinstance(decision, Edit) else ""


def _call_text(call: FunctionCall) -> str:
    return call_text(call.function_name, arguments(call), SHOWN_CHARACTERS)


def _next(journal: Journal, run: RunRow) -> str:
    if run.state in ("in_doubt", "interrupted"):
        return resume_command(run, journal)
    return command(f"show {short(run)}", journal)
