"""What one tool call from the code costs: 1000 calls in a row, ours beside the floor and the peers."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from rounds import Contender, contenders, interleaved
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
{n} calls `add(i, 1)` in a row in one action, per call. Busy core: the minimum of {rounds} interleaved rounds in which
host and guest share one core that never sleeps. CPU: what host and guest spent there together, the minimum of {few}
rounds; the same number on a quiet machine, and hardly changed on a noisy one, so it decides. Idle: the median of
{rounds} rounds on the machine as it is. Ours pass the full gate: arguments bound and validated, a rule matched, every
event told. smolagents runs the code in the host's own process: its calls cross no wall."""


def report(found: Sequence[Contender], *, quick: bool) -> Section:
    """The section of the report."""
    n, rounds, few = (300, 3, 2) if quick else (1000, 9, 4)
    spent = interleaved(found, "calls_cpu", n, busy=few)
    samples = interleaved(found, "calls", n, busy=rounds, idle=rounds)
    measured = {name: (spent[name].best, s.best, s.usual) for name, s in samples.items() if name in spent}
    floor = measured[PLAIN]
    return Section(
        title="Calls",
        note=NOTE.format(n=n, rounds=rounds, few=few),
        head=["one call", "CPU, min", "busy core, min", "idle, median", "CPU ÷ floor", "busy ÷ floor", "idle ÷ floor"],
        rows=[[name, *map(duration, each), *map(times, _ratios(each, floor))] for name, each in measured.items()],
        columns=("CPU, min", "busy core, min", "idle, median"),
        targets=[_target(measured, *ratio) for ratio in RATIOS],
    )


def _target(measured: Mapping[str, Sequence[float]], one: str, other: str, limit: float) -> Target:
    known = one in measured and other in measured
    values = _ratios(measured[one], measured[other]) if known else ()
    return Target(what=f"{one} ÷ {other}", limit=limit, unit="×", values=values)


def _ratios(one: Sequence[float], other: Sequence[float]) -> list[float]:
    return [x / y for x, y in zip(one, other, strict=True)]


if __name__ == "__main__":
    with contenders(OURS) as started:
        print(report(started, quick="--quick" in sys.argv).markdown())
