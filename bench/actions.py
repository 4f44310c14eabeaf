"""What one action costs, warm: with a call and a type check, with a hundred parallel calls, and alone."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from calls import MONTY, OTHERS, OWN, PLAIN, PROCESS
from rounds import Contender, Samples, contenders, interleaved
from tables import Section, Target, duration

CHECKED = "Hatchway monty, type-checked"
OURS = {
    CHECKED: "hatchway_gate monty async checked",
    MONTY: "hatchway_gate monty async",
    PROCESS: "hatchway_gate process async",
    OWN: "monty_pull async",
    PLAIN: "plain_child",
    **OTHERS,
}
NOTE = """\
Warm: the first action of each contender is not counted. `1 + 1` in a fresh interpreter state (the floor is
`python -I -S -c`), one action with one call `add(1, 2)`, and one with {width} parallel calls of a tool that takes
10 ms; judged by the minimum. FastMCP and smolagents do not type-check; the harness is measured as one agent run with
a scripted model."""


def report(found: Sequence[Contender], *, quick: bool) -> Section:
    """The section of the report."""
    n, rounds, width = (2, 2, 100) if quick else (5, 9, 100)
    fresh = interleaved(found, "fresh", n, idle=rounds)
    one = interleaved(found, "action", n, idle=rounds)
    gather = interleaved(found, "gather", width, idle=rounds)
    names = [contender.name for contender in found if contender.name in fresh]
    targets = [
        _target(one, CHECKED, "one call with type check", 3.0),
        _target(gather, MONTY, f"{width} parallel calls of 10 ms", 40.0),
        _target(gather, PROCESS, f"{width} parallel calls of 10 ms", 40.0),
    ]
    return Section(
        title="Actions",
        note=NOTE.format(width=width),
        head=["one action: min / median", "`1 + 1`", "one call", f"{width} parallel calls of 10 ms"],
        rows=[[name, _cell(fresh, name), _cell(one, name), _cell(gather, name)] for name in names],
        targets=targets,
    )


def _cell(samples: Mapping[str, Samples], name: str) -> str:
    if name not in samples:
        return "–"
    return f"{duration(samples[name].best)} / {duration(samples[name].usual)}"


def _target(samples: Mapping[str, Samples], name: str, what: str, limit: float) -> Target:
    values = (samples[name].best * 1e3, samples[name].usual * 1e3) if name in samples else ()
    return Target(what=f"{name}: {what}", limit=limit, unit=" ms", values=values)


if __name__ == "__main__":
    with contenders(OURS) as started:
        print(report(started, quick="--quick" in sys.argv).markdown())
