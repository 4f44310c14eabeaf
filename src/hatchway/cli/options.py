"""Options several commands share."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


def _complete_sandbox(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from hatchway.sandboxes.registry import ROWS

    return [CompletionItem(name) for name in ("auto", *ROWS) if name.startswith(incomplete)]


sandbox_option = click.option(
    "--sandbox",
    default="auto",
    metavar="NAME",
    show_default=True,
    shell_complete=_complete_sandbox,
    help="Where the code runs: a name from `hatchway doctor`, or package.module:Class.",
)
yes_option = click.option("--yes", is_flag=True, help="Allow every call that asks for approval.")
