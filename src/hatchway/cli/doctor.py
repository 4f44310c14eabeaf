"""`hatchway doctor`: which sandboxes work here, found out by doing what a launch does."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from hatchway import __version__
from hatchway.cli.display import make_console, neutral
from hatchway.core.errors import SandboxUnavailable
from hatchway.core.sandbox import Availability
from hatchway.sandboxes.registry import ROWS, SEALED, available, choose_auto

WALLS = {
    "vm": "a virtual machine",
    "container": "a container",
    "namespaces": "kernel namespaces and seccomp",
    "landlock": "Landlock and seccomp",
    "language": "the interpreter only",
    "vendor": "another machine",
    "process": "none: UNSEALED",
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
    """Say which sandboxes work on this machine, and what the others need.

    Each sandbox is tried the way a launch tries it. Exit code 0: at least one sealed sandbox is usable; 1: none is.
    """
    found = available()
    auto = _auto()
    if as_json:
        click.echo(json.dumps(_object(found, auto)))
    else:
        _print(found, auto)
    ctx.exit(0 if auto else 1)


def _auto() -> str | None:
    try:
        return choose_auto()
    except SandboxUnavailable:
        return None


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
    console.print(" · ".join(f"{key} {value}" for key, value in _machine().items()), style="dim")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("sandbox", "state", "tier", "wall", ""):
        table.add_column(title)
    for name, seen in found.items():
        wall = WALLS[seen.tier] if seen.tier else ""
        table.add_row(name, Text(*MARKS[seen.state]), seen.tier or "", wall, Text(neutral(seen.reason), "dim"))
    console.print(table)
    for name, seen in found.items():
        if seen.hint:
            console.print(f"{name}: {neutral(seen.hint)}")
    chosen = f'sandbox="auto" takes {auto}' if auto else 'sandbox="auto" finds no sealed sandbox here and refuses'
    console.print(chosen, style="bold" if auto else "bold red")
