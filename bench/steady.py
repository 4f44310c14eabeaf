"""What holds over time: flat memory over 10 000 calls, a loop that never stalls, and code that dies on time."""

from __future__ import annotations

import asyncio
import math
import os
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tables import Section, Target, duration

from hatchway import CodeExecutionError, CodeMode, CodeTimeoutError, Limits
from hatchway.core.events import AgentEvent
from hatchway.sandboxes.registry import available

WALL = 0.5
"""Seconds the code gets where it is to run out of time."""
TICK = 0.001
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
COLUMNS = ("best", "median", "worst")
NOTE = """\
{calls} calls in one action; memory is what the 1000th and the last call saw, of this process and of the backend's.
The loop's gap is the longest time it was not served while code spun for {wall:g} s, judged by the median; beside it
the same with a plain process that spins, which is what this machine does at best. Cancelling is
measured from the cancel until `run` is over, the deadline ({wall:g} s) by what `run` takes beyond it, a warm start and
a call included; both are judged by the worst. Code that is stopped before its time, or a process of it that is left
then, counts as infinite. {rounds} times each."""


def report(*, quick: bool) -> Section:
    """The section of the report."""
    calls, rounds = (2_000, 2) if quick else (10_000, 5)
    usable = [name for name, found in available().items() if found.state == "usable"]
    plain = [asyncio.run(_plain_gap()) for _ in range(rounds)]
    return Section(
        title="Steadiness",
        note=NOTE.format(calls=calls, rounds=rounds, wall=WALL),
        head=["for comparison", *COLUMNS],
        rows=[["gap of the event loop beside a plain process that spins", *map(duration, _spread(plain))]],
        targets=[target for name in usable for target in asyncio.run(_backend(name, calls, rounds))],
        columns=COLUMNS,
    )


async def _backend(name: str, calls: int, rounds: int) -> list[Target]:
    host, backend = await _memory(name, calls)
    gained = f"over {calls - 1000} calls"
    found = [
        Target(what=f"{name}: memory the host gained {gained}", limit=1.0, unit=" MiB", values=(host,)),
        Target(what=f"{name}: memory the backend gained {gained}", limit=1.0, unit=" MiB", values=(backend,)),
    ]
    gaps = [await _gap(name) for _ in range(rounds)]
    cancels = [await _cancel(name) for _ in range(rounds)]
    found.append(_milliseconds(f"{name}: gap of the event loop while code spins", 20.0, gaps, judged=1))
    found.append(_milliseconds(f"{name}: cancel code that spins", 100.0, cancels))
    for what, code in DEADLINES.get(name, DEADLINES["process"]).items():
        late = [await _overshoot(name, code) for _ in range(rounds)]
        found.append(_milliseconds(f"{name}: past the deadline, code that {what}", 50.0, late))
    return found


def _milliseconds(what: str, limit: float, seconds: Sequence[float], *, judged: int = 2) -> Target:
    values = [second * 1e3 for second in _spread(seconds)]
    return Target(what=what, limit=limit, unit=" ms", values=values, judged=judged)


def _spread(seconds: Sequence[float]) -> tuple[float, float, float]:
    return min(seconds), median(seconds), max(seconds)


async def _memory(name: str, calls: int) -> tuple[float, float]:
    """MiB the host and the backend gained from the 1000th call to the last."""
    seen: list[dict[int, int]] = []

    async def add(a: int, b: int) -> int:
        """The sum."""
        if a in (1000, calls - 1):
            seen.append({pid: _resident(pid) for pid in _family(os.getpid())})
        return a + b

    async with CodeMode(name, tools=[add], on_event=deque[AgentEvent](maxlen=100).append) as mode:
        await mode.run(f"for i in range({calls}):\n    await add(i, 1)")
    before, after = seen
    gained = {pid: (after[pid] - before[pid]) / 2**20 for pid in before if pid in after}
    return gained.pop(os.getpid()), sum(gained.values())


async def _gap(name: str) -> float:
    async with CodeMode(name, limits=Limits(wall_seconds=WALL)) as mode:
        await mode.run("1 + 1")  # a first start is not what is measured
        return await _longest_gap(mode.run("while True: pass"))


async def _plain_gap() -> float:
    async def spin() -> None:
        spinner = await asyncio.create_subprocess_exec(sys.executable, "-I", "-S", "-c", "while True: pass")
        await asyncio.sleep(WALL)
        spinner.kill()
        await spinner.wait()

    return await _longest_gap(spin())


async def _longest_gap(working: Coroutine[Any, Any, object]) -> float:
    """The longest time the loop was not served while something else went on."""
    work = asyncio.ensure_future(working)
    worst, last = 0.0, time.perf_counter()
    while not work.done():
        await asyncio.sleep(TICK)
        now = time.perf_counter()
        worst, last = max(worst, now - last - TICK), now
    await asyncio.gather(work, return_exceptions=True)
    return worst


async def _cancel(name: str) -> float:
    begun = threading.Event()

    def begin() -> None:
        """Say that the code runs."""
        begun.set()

    async with CodeMode(name, tools=[begin]) as mode:
        running = asyncio.ensure_future(mode.run(SPIN))
        await asyncio.to_thread(begun.wait)
        await asyncio.sleep(0.05)
        started = time.perf_counter()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return time.perf_counter() - started


async def _overshoot(name: str, code: str) -> float:
    """Seconds past the code's time until its run is over, counted from `run`: never less than what it overran.

    Counted from a call of the code it would be too little: what ran before the call is part of the code's time.
    """
    begun = False

    def begin() -> None:
        """Say that the code runs."""
        nonlocal begun
        begun = True

    async with CodeMode(name, tools=[begin], limits=Limits(wall_seconds=WALL)) as mode:
        await mode.run("1 + 1")  # a first start is not what is measured
        await asyncio.sleep(WALL)  # nor that of the processes a sandbox keeps ready
        started = time.perf_counter()
        try:
            await mode.run(code)
        except CodeTimeoutError:
            over = time.perf_counter()
        except CodeExecutionError as e:
            print(f"{name}: the code should have run out of time: {e}", file=sys.stderr)
            return math.inf
        else:
            return math.inf
        is_cut_short = over - started < WALL
        return math.inf if _is_left() or is_cut_short or not begun else over - started - WALL


def _is_left() -> bool:
    """Whether a process that the code started is still there."""
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if SLEEPER.encode() in process.read_bytes():
                return True
        except OSError:
            continue  # it ended meanwhile
    return False


def _family(pid: int) -> Iterator[int]:
    """A process and all its descendants."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from _family(int(child))


def _resident(pid: int) -> int:
    """Bytes of memory a process has; 0 when it ended meanwhile."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    print(report(quick="--quick" in sys.argv).markdown())
