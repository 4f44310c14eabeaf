"""`hatchway show`: what happened in a run, as a timeline; live with `-f`, as a page, a picture or JSON."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hatchway.cli.options import journal_option, json_option, run_argument

if TYPE_CHECKING:
    from hatchway.cli.exits import Exit
    from hatchway.journal.entries import RunRow
    from hatchway.journal.store import Journal

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@run_argument
@click.option("-f", "--follow", is_flag=True, help="Go on until the run has ended.")
@click.option("--full", is_flag=True, help="Show also what is too long for a line.")
@click.option("--html", type=_FILE, metavar="FILE", help="Write a page that needs nothing else.")
@click.option("--svg", type=_FILE, metavar="FILE", help="Write a picture.")
@journal_option
@json_option
@click.pass_context
def show(
    ctx: click.Context,
    run: str,
    follow: bool,
    full: bool,
    html: Path | None,
    svg: Path | None,
    journal: str,
    as_json: bool,
) -> None:
    """Show what happened in a run: code, calls, times, results, output and decisions.

    A run that another process drives can be followed live with -f. With --json it is then one event per line; Ctrl-C
    ends the watching, not the run.

    \b
    Exit codes:
      0    the run was shown; with -f: it ended well
      1    with -f: its code failed
      2    there is no such run or journal
      124  with -f: its code ran out of time
    """
    from hatchway.cli.journals import find_run, open_journal

    if follow and (html or svg):
        raise click.UsageError("--html and --svg are of what happened so far: without -f")
    with open_journal(journal) as opened:
        found = find_run(opened, run)
        if follow:
            ctx.exit(asyncio.run(_follow(opened, found, full=full, as_json=as_json)))
        if html or svg:
            _write(opened, found, html, svg)
        elif as_json:
            _print_object(opened, found)
        else:
            _print(opened, found, full=full)


def _print(journal: Journal, run: RunRow, *, full: bool) -> None:
    from hatchway.cli.display import make_console
    from hatchway.cli.standing import standing_line
    from hatchway.trace.record import Record
    from hatchway.trace.terminal import Painter

    painter = Painter(make_console(), whole=full)
    for block in Record().all(journal.events(run.run_id)):
        painter.paint(block)
    painter.end_line()
    if (line := standing_line(journal, run)) is not None:
        painter.paint(line)


def _print_object(journal: Journal, run: RunRow) -> None:
    from hatchway.cli.objects import call_object, event_object, print_json, result_object, run_object
    from hatchway.core.results import ExecutionResult
    from hatchway.journal.names import ArgumentNames

    calls, names = journal.history(run.run_id).calls.values(), ArgumentNames(run.head.functions)
    told: dict[str, Any] = run_object(run)
    told["result"] = result_object(run.ending) if isinstance(run.ending, ExecutionResult) else None
    stands = run.state not in ("running", "done", "failed")
    told["calls"] = [call_object(call, names, in_doubt=stands) for call in calls]
    told["events"] = [event_object(event) for event in journal.events(run.run_id)]
    print_json(told)


def _write(journal: Journal, run: RunRow, html: Path | None, svg: Path | None) -> None:
    from hatchway.cli.standing import standing_line
    from hatchway.trace.page import page
    from hatchway.trace.record import Record
    from hatchway.trace.terminal import picture

    blocks = Record().all(journal.events(run.run_id))
    if (line := standing_line(journal, run)) is not None:
        blocks.append(line)
    title = f"run {run.run_id}"
    for path, make in ((html, page), (svg, picture)):
        if path is not None:
            try:
                path.write_text(make(blocks, title=title), encoding="utf-8")
            except OSError as e:
                raise click.FileError(str(path), e.strerror or str(e)) from e
            click.echo(f"wrote {path}", err=True)


async def _follow(journal: Journal, run: RunRow, *, full: bool, as_json: bool) -> Exit:
    from hatchway.cli.following import JsonWatcher, TerminalWatcher, watch

    return await watch(journal, run, JsonWatcher() if as_json else TerminalWatcher(journal, full=full))
