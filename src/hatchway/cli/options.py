"""Options several commands share."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


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
yes_option = click.option("--yes", is_flag=True, help="Allow every call that asks for approval.")
