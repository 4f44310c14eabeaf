"""What an executor costs beside a plain child, and how soon code past its time is dead."""

from __future__ import annotations

import asyncio
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from typing import Any

from tables import Section, Target, duration, times

from hatchway.executors import (
    CodeExecutionInput,
    CodeExecutor,
    InvocationContext,
    LocalCodeExecutor,
    SandboxCodeExecutor,
)
from hatchway.sandboxes.registry import availability

PRINT = "print(1 + 1)"
PLAIN, LOCAL = "a plain `python3 -` child", "LocalCodeExecutor"
ADK = "Google ADK UnsafeLocalCodeExecutor"
WALL = 1
"""Seconds the code gets where it is to run out of time; ADK takes whole ones."""
SLEEPER = f"87{random.randrange(10**6):06}"
"""Seconds a left-over process would sleep; also the mark by which it is found."""
LATE = {
    "spins": "while True: pass",
    "sleeps": "import time\ntime.sleep(60)",
    "starts a child": f"import subprocess\nsubprocess.run(['sleep', '{SLEEPER}'])",
    "forks daemons": "import os, time\nfor _ in range(3):\n    if os.fork() == 0:\n        os.setsid()\n"
    f"        os.execvp('sleep', ['sleep', '{SLEEPER}'])\ntime.sleep(60)",
    "ignores SIGTERM": "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(1)",
}
NOTE = """\
`{code}`, one execution after the other, all rows in turns, {rounds} rounds; ratios to the plain child of the same
Python with an empty environment, judged by the minimum. The deadline is {wall} s; measured is the time past it until
the execution is over, judged by the worst of {late} (in the first column); a process left then counts as infinite."""
Run = Callable[[str], Awaitable[str]]
"""Runs a program and gives what it printed."""


def report(*, quick: bool) -> Section:
    """The section of the report."""
    return asyncio.run(_report(rounds=15 if quick else 60, late=1 if quick else 4))


async def _report(*, rounds: int, late: int) -> Section:
    async with AsyncExitStack() as stack:
        took = await _in_turns(await _contenders(stack), rounds)
    over = {what: [await _overshoot(_local_late(), code) for _ in range(late)] for what, code in LATE.items()}
    theirs = {what: await _overshoot(adk, code) for what, code in LATE.items()} if (adk := _adk(WALL)) else {}
    floor_min, floor_median = _spread(took[PLAIN])
    rows = [
        [name, *map(duration, (best, usual)), times(best / floor_min), times(usual / floor_median)]
        for name, (best, usual) in ((name, _spread(each)) for name, each in took.items())
    ]
    rows += [[f"{ADK}: past the deadline, code that {what}", _shown(late), "", "", ""] for what, late in theirs.items()]
    best, usual = _spread(took[LOCAL])
    ratio = Target(what=f"{LOCAL} ÷ {PLAIN}", limit=1.2, values=(best / floor_min, usual / floor_median))
    return Section(
        title="Executors",
        note=NOTE.format(code=PRINT, rounds=rounds, wall=WALL, late=late),
        head=["one execution", "min", "median", "÷ plain, min", "÷ plain, median"],
        rows=rows,
        targets=[ratio, *(_deadline(what, seconds) for what, seconds in over.items())],
    )


def _deadline(what: str, seconds: Sequence[float]) -> Target:
    values = (max(seconds) * 1e3, median(seconds) * 1e3)
    return Target(what=f"{LOCAL}: past the deadline, code that {what}", limit=50, unit=" ms", values=values)


async def _contenders(stack: AsyncExitStack) -> dict[str, Run]:
    found: dict[str, Run] = {PLAIN: _plain, LOCAL: _ours(LocalCodeExecutor())}
    for name in ("process", "jail", "monty"):
        if availability(name).state == "usable":
            sandboxed = await stack.enter_async_context(SandboxCodeExecutor(name))
            found[f"SandboxCodeExecutor, {name}"] = _ours(sandboxed)
    if (adk := _adk(60)) is not None:
        found[ADK] = adk
    return found


async def _plain(code: str) -> str:
    return _child(code)


def _child(code: str) -> str:
    command = [sys.executable, "-"]
    return subprocess.run(command, input=code, capture_output=True, text=True, check=True, env={}).stdout


def _ours(executor: CodeExecutor) -> Run:
    async def run(code: str) -> str:
        return (await executor.execute_code(InvocationContext(), CodeExecutionInput(code))).stdout

    return run


def _local_late() -> Run:
    return _ours(LocalCodeExecutor().with_timeout(WALL))


def _adk(seconds: int) -> Run | None:
    """Google ADK's own, called as ADK calls it; None where it is not installed."""
    try:
        from google.adk.code_executors import UnsafeLocalCodeExecutor
        from google.adk.code_executors.code_execution_utils import CodeExecutionInput as AdkInput
    except ImportError:
        print("google-adk is not installed: its executor is left out", file=sys.stderr)
        return None
    executor = UnsafeLocalCodeExecutor(timeout_seconds=seconds)
    nobody: Any = None

    async def run(code: str) -> str:
        return (await asyncio.to_thread(executor.execute_code, nobody, AdkInput(code))).stdout

    return run


async def _in_turns(found: Mapping[str, Run], rounds: int) -> dict[str, list[float]]:
    took: dict[str, list[float]] = {name: [] for name in found}
    for turn in range(rounds + 1):
        for name, run in found.items():
            started = time.perf_counter()
            printed = await run(PRINT)
            seconds = time.perf_counter() - started
            if printed != "2\n":
                raise ValueError(f"{name} gave {printed!r}")
            if turn:  # the first one pays for caches and pools
                took[name].append(seconds)
    return took


async def _overshoot(run: Run, code: str) -> float:
    """Seconds past the deadline until the execution is over; infinite when something of it lives on."""
    started = time.perf_counter()
    await run(code)
    over = time.perf_counter() - started - WALL
    return math.inf if _ended_by_us() else max(over, 0.0)


def _ended_by_us() -> bool:
    """Whether a process of the code was still there; it is killed."""
    found = False
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if SLEEPER.encode() in (process / "cmdline").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
                found = True
        except OSError:
            continue  # it ended meanwhile
    return found


def _spread(seconds: Sequence[float]) -> tuple[float, float]:
    return min(seconds), median(seconds)


def _shown(late: float) -> str:
    return "left running" if math.isinf(late) else duration(late)


if __name__ == "__main__":
    import containers

    for each in (report, containers.report):
        print(each(quick="--quick" in sys.argv).markdown() + "\n", flush=True)
