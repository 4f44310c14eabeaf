"""What one tool call from the code costs: 1000 calls in a row, ours beside the floor and the peers."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from math import isnan, nan
from statistics import median

from rounds import Contender, Samples, contenders, interleaved
from tables import Section, Target, duration, times

from hatchway.sandboxes.registry import ROWS

COMPARED = ("monty", "process")
"""The backends with a target."""
PLAIN = "plain JSON-lines child"
RAW = "Hatchway stdio transport, no gate"
PROCESS = "Hatchway process, `async def` tool"
PROCESS_DEF = "Hatchway process, `def` tool"
OWN = "Monty's own pull loop, `async def` tool"
OWN_DEF = "Monty's own pull loop, `def` tool"
MONTY = "Hatchway monty, `async def` tool"
MONTY_DEF = "Hatchway monty, `def` tool"
OTHERS = {f"Hatchway {name}, `async def` tool": f"hatchway_gate {name} async" for name in ROWS if name not in COMPARED}
"""The other registered backends; one that is not usable here is left out when it does not start."""
OURS = {
    PLAIN: "plain_child",
    RAW: "raw_transport",
    PROCESS: "hatchway_gate process async",
    PROCESS_DEF: "hatchway_gate process def",
    OWN: "monty_pull async",
    MONTY: "hatchway_gate monty async",
    OWN_DEF: "monty_pull def",
    MONTY_DEF: "hatchway_gate monty def",
    **OTHERS,
}
RATIOS = (
    (PROCESS, PLAIN, 3.0),
    (PROCESS_DEF, PLAIN, 3.0),
    (RAW, PLAIN, 1.3),
    (MONTY, OWN, 1.3),
    (MONTY_DEF, OWN_DEF, 1.3),
)
NOTE = """\
{n} calls `add(i, 1)` in a row in one action: the time from the first to the last, per call. Busy core: the minimum of
{busy} interleaved rounds in which host and guest share one core that never sleeps. CPU: what host and guest spent in
those rounds together; the same number on a quiet machine, and hardly changed on a noisy one, so it decides. Idle: the
median of {idle} rounds on the machine as it is. Ours pass the full gate: arguments bound and validated, a rule
matched, every event told. smolagents runs the code in the host's own process: its calls cross no wall."""


def report(found: Sequence[Contender], *, quick: bool) -> Section:
    """The section of the report."""
    n, busy, idle = (300, 2, 2) if quick else (1000, 9, 5)
    samples = interleaved(found, "calls", n, busy=busy, idle=idle)
    measured = {name: _numbers(each) for name, each in samples.items()}
    floor = measured[PLAIN]
    return Section(
        title="Calls",
        note=NOTE.format(n=n, busy=busy, idle=idle),
        head=["one call", "CPU, min", "busy core, min", "idle, median", "CPU ÷ floor", "busy ÷ floor", "idle ÷ floor"],
        rows=[[name, *map(duration, each), *map(times, _ratios(each, floor))] for name, each in measured.items()],
        columns=("CPU, min", "busy core, min", "idle, median"),
        targets=[_target(measured, *ratio) for ratio in RATIOS],
    )


def _numbers(samples: Samples) -> tuple[float, float, float]:
    """CPU and time at best, time at the median; the samples hold time and CPU by turns."""
    best = samples.busy or samples.idle
    return min(best[1::2]), min(best[::2]), median(samples.idle[::2])


def _target(measured: Mapping[str, Sequence[float]], one: str, other: str, limit: float) -> Target:
    known = one in measured and other in measured
    values = _ratios(measured[one], measured[other]) if known else []
    judged = 1 if values and isnan(values[0]) else 0
    return Target(what=f"{one} ÷ {other}", limit=limit, unit="×", values=values, judged=judged)


def _ratios(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """Number by number; not a number where a platform does not tell the CPU of another process."""
    return [x / y if y else nan for x, y in zip(one, other, strict=True)]


if __name__ == "__main__":
    with contenders(OURS) as started:
        print(report(started, quick="--quick" in sys.argv).markdown())
