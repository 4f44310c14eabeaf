"""What holds over time: flat memory over 10 000 calls, a loop that never stalls, and code that dies on time."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tables import Section, Target

from hatchway import CodeExecutionError, CodeMode, CodeTimeoutError, Limits
from hatchway.sandboxes.registry import available

WALL = 0.3
"""Seconds the code gets where it is to run out of time."""
SLEEPER = f"86{random.randrange(10**6):06}"
"""Seconds a left-over process would sleep; also the mark by which it is found."""
SPIN = "begin()\nwhile True: pass"
FORKS = f"""import os, time
begin()
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        os.execvp("sleep", ["sleep", "{SLEEPER}"])
time.sleep(60)"""
DEADLINES = {
    "process": {
        "spins": SPIN,
        "sleeps": "import time\nbegin()\ntime.sleep(60)",
        "forks daemons": FORKS,
        "ignores SIGTERM": "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nbegin()\n"
        "while True:\n    time.sleep(1)",
    },
    "monty": {"spins": SPIN, "computes one huge power": "begin()\n3**30_000_000"},
}
NOTE = """\
{calls} calls in one action; memory is what the 1000th and the last call saw, of this process and of the backend's.
The loop's gap is the longest time it was not served while code spun for a second. Cancelling and the deadline
({wall:g} s) are measured {rounds} times, from the cancel, or from the end of the code's time, until `run` is over; then
no process of the code may be left. Judged by the worst."""
Measure = Callable[[], Awaitable[float]]


def report(*, quick: bool) -> Section:
    """The section of the report."""
    calls, rounds = (2_000, 2) if quick else (10_000, 5)
    usable = [name for name, found in available().items() if found.state == "usable"]
    targets = [target for name in usable for target in asyncio.run(_backend(name, calls, rounds))]
    return Section(
        title="Steadiness",
        note=NOTE.format(calls=calls, rounds=rounds, wall=WALL),
        targets=targets,
        columns=("best", "worst"),
    )


async def _backend(name: str, calls: int, rounds: int) -> list[Target]:
    memory = await _memory(name, calls)
    what = f"{name}: memory gained by {{}} over {calls - 1000} calls"
    return [
        Target(what=what.format("the host"), limit=1.0, unit=" MiB", best=memory.host),
        Target(what=what.format("the backend"), limit=1.0, unit=" MiB", best=memory.backend),
        _milliseconds(f"{name}: gap of the event loop while code spins", 20.0, [await _gap(name) for _ in range(rounds)]),
        _milliseconds(f"{name}: cancel code that spins", 100.0, [await _cancel(name) for _ in range(rounds)]),
        *[
            _milliseconds(f"{name}: past the deadline, code that {what}", 50.0, [await _deadline(name, code) for _ in range(rounds)])
            for what, code in DEADLINES.get(name, DEADLINES["process"]).items()
        ],
    ]


def _milliseconds(what: str, limit: float, seconds: Sequence[float]) -> Target:
    return Target(what=what, limit=limit, unit=" ms", best=min(seconds) * 1e3, usual=max(seconds) * 1e3)
