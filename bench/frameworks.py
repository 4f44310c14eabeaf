"""What code costs inside the frameworks: `execute_code` over their own floor, nested calls, preparing a run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from statistics import median

from rounds import Samples, contenders, interleaved
from tables import Section, Target, duration

PA, AF = "Hatchway in Pydantic AI", "Hatchway in Agent Framework"
PA_BARE, AF_BARE = "Monty's own async pull + one bare call of Pydantic AI", "Monty's own async pull + one bare invoke"
PA_FLOOR, AF_FLOOR = "Pydantic AI, a tool that does nothing", "Agent Framework, a tool that does nothing"
OURS = {
    PA_FLOOR: "hatchway_pydantic_ai floor",
    f"{PA}, jail": "hatchway_pydantic_ai jail",
    f"{PA}, monty": "hatchway_pydantic_ai monty",
    AF_FLOOR: "hatchway_agent_framework floor",
    f"{AF}, jail": "hatchway_agent_framework jail",
    f"{AF}, monty": "hatchway_agent_framework monty",
    PA_BARE: "monty_pull pydantic_ai",
    AF_BARE: "monty_pull agent_framework",
}
NOTE = """\
`execute_code` warm, with two typed tools in sight: code that calls none of them, and code that calls `add(1, 2)` once,
which may take the time of a nested call more; on Monty the code is type-checked first. In Pydantic AI it is one whole
run of an agent with a scripted model, in Agent Framework one invocation of the tool; the floor is the same with a tool
that does nothing. One nested call: CPU of host and guest, {n} in a row; the minimum on a busy core. Preparing:
`before_run` with 100 tools, and with a workspace of 2000 files besides. Gap: the longest time the event loop stood
still while code counted, and in the very first action of a process, which opens everything. Minimum / median of
{rounds} rounds in turns."""
PREPARING, GAPS = ("preparing", "+ 2000 files"), ("gap", "first gap")
MOST_CALLS = 10_000
"""In one action, as many as the limit allows."""


def report(*, quick: bool) -> Section:
    """The section of the report."""
    n, rounds = (200, 2) if quick else (1000, 7)
    with contenders(OURS) as found:
        first = {each.name: Samples(idle=each.measure("gap", 1)) for each in found if "gap" in each.jobs}
        plain = interleaved(found, "fresh", 3, busy=rounds, idle=rounds)
        action = interleaved(found, "action", 3, busy=rounds, idle=rounds)
        calls = _cpu(interleaved(found, "calls", n, busy=rounds, idle=rounds))
        before = interleaved(found, "before_run", 20, idle=rounds)
        large = interleaved(found, "before_run_large", 20, idle=rounds)
        gap = interleaved(found, "gap", 1, idle=rounds)
        many = interleaved([each for each in found if each.name.startswith("Hatchway")], "calls", MOST_CALLS, idle=1)
    names = [each.name for each in found if each.name in action]
    columns = (plain, action, calls, before, large, gap, first)
    return Section(
        title="Frameworks",
        note=NOTE.format(n=n, rounds=rounds),
        head=[
            "min / median",
            "`execute_code`",
            "with one call",
            "one nested call",
            "preparing",
            "+ 2000 files",
            "gap",
            "first gap",
        ],
        rows=[[name, *(_cell(each, name) for each in columns)] for name in names],
        targets=[
            *(_over_floor(plain, name, floor, limit) for name, floor, limit in _OVER),
            *(_over_floor(action, name, floor, limit + 0.2, "with one call") for name, floor, limit in _OVER),
            *(_target(calls, name, "one nested call", 200.0, 1e6, " µs") for name in names if "jail" in name),
            *(_beside(calls, f"{name}, monty", bare) for name, bare in ((PA, PA_BARE), (AF, AF_BARE))),
            *(_target(before, f"{AF}, {kind}", "preparing a run", 0.2, 1e3, " ms") for kind in ("jail", "monty")),
            *(_target(large, f"{AF}, {kind}", "with 2000 files", 0.2, 1e3, " ms") for kind in ("jail", "monty")),
            *(_target(gap, name, "gap", 20.0, 1e3, " ms") for name in names if name.startswith("Hatchway")),
            *(_over_floor(first, name, floor, 20.0, "first gap") for name, floor, _ in _OVER),
            *(_reached(name, name in many) for name in names if name.startswith("Hatchway")),
        ],
    )


_OVER = [
    (f"{PA}, jail", PA_FLOOR, 2.0),
    (f"{AF}, jail", AF_FLOOR, 2.0),
    (f"{PA}, monty", PA_FLOOR, 3.0),
    (f"{AF}, monty", AF_FLOOR, 3.0),
]


def _cpu(samples: Mapping[str, Samples]) -> dict[str, Samples]:
    """Of calls the samples hold time and CPU by turns: the CPU alone, which other load hardly changes."""
    return {name: Samples(each.busy[1::2], each.idle[1::2]) for name, each in samples.items()}


def _cell(samples: Mapping[str, Samples], name: str) -> str:
    return f"{duration(samples[name].best)} / {duration(samples[name].usual)}" if name in samples else "–"


def _target(samples: Mapping[str, Samples], name: str, what: str, limit: float, scale: float, unit: str) -> Target:
    values = (samples[name].best * scale, samples[name].usual * scale) if name in samples else ()
    return Target(what=f"{name}: {what}", limit=limit, unit=unit, values=values)


def _over_floor(
    samples: Mapping[str, Samples], name: str, floor: str, limit: float, what: str = "`execute_code`"
) -> Target:
    values: tuple[float, ...] = ()
    if name in samples and floor in samples:
        one, other = samples[name], samples[floor]
        values = ((one.best - other.best) * 1e3, (median(one.idle) - median(other.idle)) * 1e3)
    return Target(what=f"{name}: {what} over the floor", limit=limit, unit=" ms", values=values)


def _reached(name: str, was_reached: bool) -> Target:
    """A contender whose action fails, or gives another value, is not among those that did it."""
    what = f"{name}: calls in one action"
    return Target(what=what, limit=MOST_CALLS, values=(MOST_CALLS if was_reached else 0,), at_least=True)


def _beside(samples: Mapping[str, Samples], name: str, bare: str) -> Target:
    values: tuple[float, ...] = ()
    if name in samples and bare in samples:
        one, other = samples[name], samples[bare]
        values = (one.best / other.best, one.usual / other.usual)
    return Target(what=f"{name}: one nested call ÷ ({bare})", limit=1.3, unit="×", values=values)


if __name__ == "__main__":
    print(report(quick="--quick" in sys.argv).markdown())
