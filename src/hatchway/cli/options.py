"""Options several commands share."""

from __future__ import annotations

import math
from typing import Any

import click
from click.shell_completion import CompletionItem


class Seconds(click.ParamType[float]):
    """A time; `inf` is one that never ends."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or an error that says what it takes."""
        try:
            seconds = float(value)
        except ValueError:
            seconds = math.nan
        if not seconds > 0:
            self.fail(f"{value} is no time: give seconds, more than 0, such as 30 or 0.5.", param, ctx)
        return seconds


def complete_sandbox(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The registered names that begin so."""
    from hatchway.sandboxes.registry import ROWS

    return [CompletionItem(name) for name in ("auto", *ROWS) if name.startswith(incomplete)]


sandbox_option = click.option(
    "--sandbox",
    default="auto",
    metavar="NAME",
    show_default=True,
    shell_complete=complete_sandbox,
    help="Where the code runs: a name from `hatchway doctor`, or package.module:Class.",
)
DEFAULT_JOURNAL, JOURNAL_VARIABLE = ".hatchway/journal.db", "HATCHWAY_JOURNAL"


def complete_run(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The newest runs of the journal whose id begins so."""
    from hatchway.cli.journals import open_journal
    from hatchway.core.errors import HatchwayError

    try:
        with open_journal(ctx.params.get("journal") or DEFAULT_JOURNAL) as journal:
            found = [run for run in journal.runs(limit=50) if run.run_id.startswith(incomplete)]
    except HatchwayError:  # a shell that completes is no place for errors
        return []
    return [CompletionItem(run.run_id, help=run.state) for run in found]


journal_option = click.option(
    "--journal",
    default=DEFAULT_JOURNAL,
    metavar="PATH|URL",
    show_default=True,
    envvar=JOURNAL_VARIABLE,
    show_envvar=True,
    help="Where runs are recorded: a file, or postgresql://…",
)
run_argument = click.argument("run", metavar="RUN", shell_complete=complete_run)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
tools_option = click.option(
    "--tools", multiple=True, metavar="MODULE|FILE.py", help="Offer the functions in it to the code."
)
packages_option = click.option(
    "--packages", multiple=True, metavar="NAME", help="Let the code import it, such as 'pandas==2.*'."
)
yes_option = click.option("--yes", is_flag=True, help="Allow every call that asks for approval.")
