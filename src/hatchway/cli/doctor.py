"""`hatchway doctor`: which sandboxes work here, found out by doing what a launch does."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from typing import Any

import click

from hatchway import __version__
from hatchway.cli.display import make_console, neutral, print_line
from hatchway.core.sandbox import Availability
from hatchway.sandboxes.registry import ROWS, SEALED, available, strongest

WALLS = {
    "vm": "a virtual machine",
    "container": "a container",
    "namespaces": "kernel namespaces and seccomp",
    "landlock": "Landlock and seccomp",
    "language": "the interpreter",
    "vendor": "another machine",
    "process": "no wall: UNSEALED",
}
MARKS = {
    "usable": ("✓ usable", "green"),
    "installed_but_unusable": ("✗ unusable", "red"),
    "missing": ("– missing", "dim"),
}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Say which sandboxes work here, and what the others need.

    Each sandbox is tried the way a launch tries it. Exit code 0: at least one sealed sandbox is usable; 1: none is.
    """
    found = available()
    auto = strongest(found)
    if as_json:
        click.echo(json.dumps(_object(found, auto)))
    else:
        _print(found, auto)
    ctx.exit(0 if auto else 1)


def _object(found: Mapping[str, Availability], auto: str | None) -> dict[str, Any]:
    rows = [
        {
            "name": name,
            "state": seen.state,
            "tier": seen.tier,
            "sealed": seen.tier in SEALED,
            "reason": seen.reason,
            "hint": seen.hint,
            "extra": ROWS[name].extra,
        }
        for name, seen in found.items()
    ]
    return {**_machine(), "auto": auto, "sandboxes": rows}


def _machine() -> dict[str, str]:
    return {"hatchway": __version__, "python": platform.python_version(), "platform": platform.platform()}


def _print(found: Mapping[str, Availability], auto: str | None) -> None:
    console = make_console()
    print_line(console, (" · ".join(f"{key} {value}" for key, value in _machine().items()) + "\n", "dim"))
    names, tiers = max(map(len, found)), max(map(len, WALLS))
    for name, seen in found.items():
        mark, style = MARKS[seen.state]
        tier, wall = seen.tier or "", WALLS[seen.tier] if seen.tier else ""
        print_line(console, f"{name:<{names}}  ", (f"{mark:<12}", style), f"{tier:<{tiers}}  {wall}".rstrip())
        for note in filter(None, (seen.reason, seen.hint)):
            print_line(console, (f"{'':<{names}}  {neutral(note)}", "dim"))
    chosen = f'\nsandbox="auto" takes {auto}' if auto else '\nsandbox="auto" finds no sealed sandbox here and refuses'
    print_line(console, (chosen, "bold" if auto else "bold red"))
