"""What one tool call from the code costs: 1000 calls in a row, ours beside the floor and the peers."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rounds import Contender, Samples, contenders, interleaved
from tables import Section, Target, duration, times

PLAIN = "plain JSON-lines child"
RAW = "Hatchway stdio transport, no gate"
PROCESS = "Hatchway process, `async def` tool"
PROCESS_DEF = "Hatchway process, `def` tool"
OWN = "Monty's own pull loop, `async def` tool"
OWN_DEF = "Monty's own pull loop, `def` tool"
MONTY = "Hatchway monty, `async def` tool"
MONTY_DEF = "Hatchway monty, `def` tool"
OURS = {
    PLAIN: "plain_child",
    RAW: "raw_transport",
    PROCESS: "hatchway_gate process async",
    PROCESS_DEF: "hatchway_gate process def",
    OWN: "monty_pull async",
    MONTY: "hatchway_gate monty async",
    OWN_DEF: "monty_pull def",
    MONTY_DEF: "hatchway_gate monty def",
}
RATIOS = (
    (PROCESS, PLAIN, 3.0),
    (PROCESS_DEF, PLAIN, 3.0),
    (RAW, PLAIN, 1.3),
    (MONTY, OWN, 1.3),
    (MONTY_DEF, OWN_DEF, 1.3),
)
NOTE = """\
{n} calls `add(i, 1)` in a row in one action, per call; {rounds} interleaved rounds on a busy core (host and guest share
one core that never sleeps), then {rounds} on the machine as it is. Ours pass the full gate: arguments bound and
validated, a rule matched, every event told. Ratios are judged by the minima. smolagents runs the code in the host's
own process: its calls cross no wall."""


def report(found: Sequence[Contender], *, quick: bool) -> Section:
    """The section of the report."""
    n, rounds = (300, 3) if quick else (1000, 9)
    samples = interleaved(found, "calls", n, rounds, busy=True)
    floor = samples[PLAIN]
    rows = [
        [name, duration(s.best), duration(s.usual), times(s.best / floor.best), times(s.usual / floor.usual)]
        for name, s in samples.items()
    ]
    return Section(
        title="Calls",
        note=NOTE.format(n=n, rounds=rounds),
        head=["one call", "busy core, min", "idle, median", "× floor, min", "× floor, median"],
        rows=rows,
        targets=[_ratio(samples, *ratio) for ratio in RATIOS],
        columns=("busy core, min", "idle, median"),
    )


def _ratio(samples: dict[str, Samples], one: str, other: str, limit: float) -> Target:
    what = f"{one} / {other}"
    if one not in samples or other not in samples:
        return Target(what=what, limit=limit, unit="×")
    x, y = samples[one], samples[other]
    return Target(what=what, limit=limit, unit="×", best=x.best / y.best, usual=x.usual / y.usual, by_best=True)


if __name__ == "__main__":
    with contenders(OURS) as started:
        print(report(started, quick="--quick" in sys.argv).markdown())
