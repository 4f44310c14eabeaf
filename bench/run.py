"""All published numbers, ours beside the peers', as Markdown on stdout.

python bench [--quick] [calls | actions | steady | startup | coverage ...]
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version

import actions
import calls
import commands
import containers
import coverage
import frameworks
import jail
import leaks
import servers
import startup
import steady
import terminal
from rounds import contenders
from tables import Section

import agent
import durable
import executors

CONTESTS = {"calls": calls, "actions": actions}
"""Measured on contenders, which are started once for both."""
REPORTS: dict[str, Callable[..., Section]] = {
    "jail": jail.report,
    "leaks": leaks.report,
    "commands": commands.report,
    "executors": executors.report,
    "containers": containers.report,
    "durable": durable.report,
    "mcp": servers.report,
    "frameworks": frameworks.report,
    "agent": agent.report,
    "steady": steady.report,
    "startup": startup.report,
    "terminal": terminal.report,
    "coverage": coverage.report,
}


def main(argv: Sequence[str]) -> int:
    """Print the report; the numbers decide nothing, so this is always 0."""
    parser = argparse.ArgumentParser(prog="bench", description="Print the published numbers, ours beside the peers'.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these: {', '.join([*CONTESTS, *REPORTS])}")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    given = parser.parse_args(argv)
    if unknown := set(given.names) - {*CONTESTS, *REPORTS}:
        parser.error(f"no such bench: {', '.join(sorted(unknown))}")
    started = time.monotonic()
    print(_machine(), flush=True)
    sections: list[Section] = []
    for section in _sections(given.names or [*CONTESTS, *REPORTS], quick=given.quick):
        sections.append(section)
        print(f"\n{section.markdown()}", flush=True)
    verdicts = [target.verdict for section in sections for target in section.targets]
    print(f"\n{verdicts.count('met')} of {len(verdicts)} targets met, in {time.monotonic() - started:.0f} s.")
    return 0


def _sections(names: Sequence[str], *, quick: bool) -> Iterator[Section]:
    if contests := [CONTESTS[name] for name in CONTESTS if name in names]:
        ours = {name: script for contest in contests for name, script in contest.OURS.items()}
        with contenders(ours) as found:
            for contest in contests:
                others = ours.keys() - contest.OURS.keys()
                yield contest.report([each for each in found if each.name not in others], quick=quick)
    yield from (REPORTS[name](quick=quick) for name in REPORTS if name in names)


def _machine() -> str:
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    versions = f"Hatchway {version('hatchway')}, Monty {version('pydantic-monty')}, Python {platform.python_version()}"
    machine = f"{platform.system()} {platform.release()}, {os.cpu_count()} cores, load {load}"
    return f"# Numbers\n\n{versions}, {machine}. Compare the rows of one run with each other, never two runs."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
