"""`hatchway conformance`: a sandbox held against the contract, one line per check."""

from __future__ import annotations

import asyncio
import json
import time
from functools import partial

import click
from rich.console import Console

from hatchway.cli.display import cut, make_console, neutral, print_line
from hatchway.cli.exits import Exit
from hatchway.cli.options import complete_sandbox
from hatchway.cli.tool_modules import import_from_here
from hatchway.core.errors import SandboxUnavailable
from hatchway.sandboxes.registry import make_sandbox, sandbox_class
from hatchway.testing import CheckOutcome, ConformanceReport, run_conformance

MARKS = {"passed": ("✓", "green"), "failed": ("✗", "bold red"), "skipped": ("–", "dim")}


@click.command()
@click.argument("sandbox", metavar="NAME|package.module:Class", shell_complete=complete_sandbox)
@click.option("--only", multiple=True, metavar="PATTERN", help="A topic, a check, or a pattern: values, 'limits.*'.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
@click.pass_context
def conformance(ctx: click.Context, sandbox: str, only: tuple[str, ...], as_json: bool) -> None:
    """Check a sandbox against the contract.

    Checks about what the sandbox does not claim are skipped with the reason. Exit code 0: it conforms; 1: a check
    failed; 3: the sandbox does not work here.
    """
    import_from_here()
    _refuse_unusable(sandbox)
    progress = None if as_json else Progress(make_console())
    started = time.monotonic()
    trying = run_conformance(partial(make_sandbox, sandbox), only or None, progress)
    report = asyncio.run(trying)
    seconds = time.monotonic() - started
    if progress is None:
        click.echo(json.dumps(_object(sandbox, report, seconds)))
    else:
        progress.summary(sandbox, report, seconds)
    ctx.exit(Exit.DONE if report.conforms else Exit.FAILED)


def _refuse_unusable(sandbox: str) -> None:
    if sandbox == "auto":
        return
    found = sandbox_class(sandbox).probe()
    if found.state != "usable":
        raise SandboxUnavailable(f"the sandbox {sandbox} does not work here: {found.reason}", hint=found.hint)


class Progress:
    """Prints each outcome as it comes, topic by topic."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._topic = ""

    def __call__(self, outcome: CheckOutcome) -> None:
        """One check is done."""
        if outcome.check.topic != self._topic:
            self._topic = outcome.check.topic
            print_line(self._console, (self._topic, "bold"))
        mark, style = MARKS[outcome.state]
        took = f"  {outcome.seconds * 1000:.0f} ms" if outcome.seconds else ""
        print_line(self._console, (f"  {mark} ", style), outcome.check.description, (took, "dim"))
        if outcome.message:
            where = f"{outcome.check.id}: " if outcome.state == "failed" else ""
            message = cut(neutral(outcome.message), 2000).replace("\n", "\n      ")
            print_line(self._console, (f"      {where}{message}", "red" if outcome.state == "failed" else "dim"))

    def summary(self, sandbox: str, report: ConformanceReport, seconds: float) -> None:
        """The last line."""
        verdict, style = ("conforms", "bold green") if report.conforms else ("does not conform", "bold red")
        counts = f"{len(report.passed)} passed, {len(report.failed)} failed, {len(report.skipped)} skipped"
        print_line(self._console, (f"{sandbox} {verdict}", style), f": {counts} in {seconds:.1f} s")


def _object(sandbox: str, report: ConformanceReport, seconds: float) -> dict[str, object]:
    checks = [
        {
            "id": outcome.check.id,
            "description": outcome.check.description,
            "state": outcome.state,
            "seconds": round(outcome.seconds, 4),
            "message": outcome.message,
        }
        for outcome in report.outcomes
    ]
    counts = {"passed": len(report.passed), "failed": len(report.failed), "skipped": len(report.skipped)}
    return {"sandbox": sandbox, "conforms": report.conforms, **counts, "seconds": round(seconds, 3), "checks": checks}
