"""`hatchway demo` on the command line; the tour itself is in `tour.py`, imported when it is wanted."""

from __future__ import annotations

import asyncio

import click

from hatchway.cli.options import sandbox_option, yes_option


@click.command()
@yes_option
@sandbox_option
def demo(yes: bool, sandbox: str) -> None:
    """See it work: no key, no network, a few seconds.

    A scripted model writes two actions. They run in a real sandbox and call real tools: four at once, one that fails
    and is recovered from, one that a rule denies, one that asks you first.
    """
    from hatchway.cli.demo.tour import tour

    asyncio.run(tour(sandbox, yes=yes))
