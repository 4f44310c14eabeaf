"""The agent beside freeact's: one turn, one call with approval, cancelling, and what it weighs."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from statistics import median

from peers import AGENT, is_ready
from rounds import Samples, contenders, interleaved
from tables import Section, Target, duration

OURS = "Hatchway, sealed in the jail"
NOTE = """\
On a model of no latency that runs what it is prompted with; everything is asked about and approved at once. Turn: one
code action `1 + 1`, from the prompt to the answer. Call: one of {n} the code makes, each approved on its own; ours
calls a function, freeact an MCP server over HTTP, which is the only way it has. Cancel: of code that counts for ever,
until the stream has ended, and until the next turn is answered. Weight: PSS of the process and all it started.
freeact's code is not sealed: its sandbox does not start on Linux. {peer}Minimum / median of {rounds} rounds."""
TOLD = """\
freeact could not be installed here; what was measured elsewhere, not in this run: turn 15 / 56 ms, call 5.7 / 9 to 13
ms, cancel 3.2 s, 422 MB. """


def report(*, quick: bool) -> Section:
    """The section of the report."""
    os.environ["HATCHWAY_BENCH_PYTHON"] = sys.executable  # so that freeact finds the server the code calls
    n, rounds = 200, 2 if quick else 5
    peers = [AGENT] if is_ready(AGENT) else []
    with contenders({OURS: "hatchway_agent"}, peers) as found:
        turn = interleaved(found, "turn", 10, idle=rounds)
        approved = interleaved(found, "approved", n, idle=rounds)
        calls = {name: Samples(idle=each.idle[0::2]) for name, each in approved.items()}
        weight = interleaved(found, "weight", 1, idle=1)
        cancel = interleaved(found, "cancel", 1, idle=rounds)
        again = interleaved(found, "again", 1, idle=rounds)
        names = [each.name for each in found]
    columns = (turn, calls, cancel, again)
    return Section(
        title="The agent",
        note=NOTE.format(n=n, rounds=rounds, peer="" if peers else TOLD),
        head=["min / median", "turn", "call with approval", "cancel", "cancel and next turn", "weight"],
        rows=[[name, *(_cell(each, name) for each in columns), _weight(weight, name)] for name in names],
        targets=[
            _target("a turn with one code action", turn, 10.0, 1e3, " ms"),
            _target("a call with approval", calls, 1.0, 1e3, " ms"),
            _target("cancelling", cancel, 0.2, 1.0, " s"),
            _target("one agent", weight, 120.0, 1.0, " MB"),
        ],
    )


def _cell(samples: Mapping[str, Samples], name: str) -> str:
    return f"{duration(samples[name].best)} / {duration(samples[name].usual)}" if name in samples else "–"


def _weight(samples: Mapping[str, Samples], name: str) -> str:
    return f"{samples[name].best:.0f} MB" if name in samples else "–"


def _target(what: str, samples: Mapping[str, Samples], limit: float, scale: float, unit: str) -> Target:
    values = (samples[OURS].best * scale, median(samples[OURS].idle) * scale) if OURS in samples else ()
    return Target(what=what, limit=limit, unit=unit, values=values, judged=1)


if __name__ == "__main__":
    print(report(quick="--quick" in sys.argv).markdown())
