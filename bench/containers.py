"""What a container costs beside the same `docker run` by hand, and how soon one past its time is gone."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from tables import Section, Target, duration, times

from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult
from hatchway.executors import CodeExecutionInput, ContainerCodeExecutor, InvocationContext
from hatchway.sandboxes.container import ContainerSandbox, owner
from hatchway.sandboxes.registry import availability

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "engine"))
import sharing

PRINT = "print(1 + 1)"
HAND, OURS, BARE = "`docker run` by hand, the same flags", "ContainerCodeExecutor", "ContainerCodeExecutor, no files"
POOL, COLD = "ContainerSandbox, pre-started", "ContainerSandbox, without spares"
WALL = 2.0
"""Seconds the code gets where it is to run out of time: a container is up by then."""
LATE = {
    "spins": "while True: pass",
    "sleeps": "import time\ntime.sleep(60)",
    "ignores every signal": "import signal, time\nfor s in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:\n"
    "    signal.signal(s, signal.SIG_IGN)\nwhile True: time.sleep(1)",
    "forks daemons": "import os, time\nfor _ in range(3):\n    if os.fork() == 0:\n        os.setsid()\n"
    "        time.sleep(60)\ntime.sleep(60)",
}
NOTE = """\
`{code}` in a real engine ({engine}), one after the other, all rows in turns, {rounds} rounds; ratios to the client run
by hand with the very flags: of the minima, and the median of the ratios of each round, which is judged, because an
engine's own work varies more than what is measured here. Spares are started between the rounds, which is not counted.
Past the deadline of {wall:g} s: until the engine lists no container of ours any more, judged by the worst of {late}."""
Run = Callable[[], Awaitable[None]]


def report(*, quick: bool) -> Section:
    """The section of the report; without an engine it says so."""
    with ExitStack() as stack:
        if availability("container").state == "usable":
            engine = "the machine's own"
        elif reason := sharing.reason_to_skip():
            return _unmeasured(reason)
        else:
            told = stack.enter_context(sharing.engine(Path(stack.enter_context(tempfile.TemporaryDirectory()))))
            if "error" in told:
                return _unmeasured(told["error"])
            os.environ["DOCKER_HOST"] = told["host"]
            stack.callback(os.environ.pop, "DOCKER_HOST")
            engine = "started for this, with an image of this Python"
        return asyncio.run(_report(engine, rounds=5 if quick else 20, late=1 if quick else 3))


async def _report(engine: str, *, rounds: int, late: int) -> Section:
    async with ContainerSandbox(spares=1) as pool, ContainerSandbox(spares=0) as cold:
        took = await _in_turns(_contenders(pool, cold), pool, rounds)
    over = {what: [await _overshoot(code) for _ in range(late)] for what, code in LATE.items()}
    ratios = {name: _ratios(took[name], took[HAND]) for name in took}
    return Section(
        title="Containers",
        note=NOTE.format(code=PRINT, engine=engine, rounds=rounds, wall=WALL, late=late),
        head=["one execution", "min", "median", "÷ by hand, of minima", "÷ by hand, of each round"],
        rows=[[name, *map(duration, _spread(took[name])), *map(times, ratios[name])] for name in took],
        targets=[
            Target(what=f"{OURS} ÷ by hand", limit=1.1, values=ratios[OURS], judged=1),
            Target(what=f"{POOL} ÷ by hand", limit=0.4, values=ratios[POOL], judged=1),
            *(_deadline(what, seconds) for what, seconds in over.items()),
        ],
    )


def _contenders(pool: ContainerSandbox, cold: ContainerSandbox) -> dict[str, Run]:
    executor = ContainerCodeExecutor()
    bare = dataclasses.replace(executor, collect_files=False)
    return {
        HAND: lambda: _by_hand(bare),
        OURS: lambda: _execute(executor),
        BARE: lambda: _execute(bare),
        POOL: lambda: _act(pool),
        COLD: lambda: _act(cold),
    }


async def _by_hand(policy: ContainerCodeExecutor) -> None:
    command = ["docker", *policy.build_run_args(owner.fresh_name())]
    ran = await asyncio.to_thread(subprocess.run, command, input=PRINT, capture_output=True, text=True, check=True)
    _expect(ran.stdout)


async def _execute(executor: ContainerCodeExecutor) -> None:
    result = await executor.execute_code(InvocationContext(), CodeExecutionInput(PRINT))
    _expect(result.stdout)


async def _act(sandbox: ContainerSandbox) -> None:
    result = await (await sandbox.execute(PRINT)).next()
    assert isinstance(result, ExecutionResult)
    _expect(result.stdout)


async def _in_turns(found: Mapping[str, Run], pool: ContainerSandbox, rounds: int) -> dict[str, list[float]]:
    took: dict[str, list[float]] = {name: [] for name in found}
    for turn in range(rounds + 1):
        for name, run in found.items():
            await pool.prestart()
            await asyncio.to_thread(_wait_until_left, 1)
            started = time.perf_counter()
            await run()
            if turn:  # the first one pays for the checks that are made once
                took[name].append(time.perf_counter() - started)
    return took


async def _overshoot(code: str) -> float:
    """Seconds past the deadline until the engine knows no container of ours any more."""
    executor = ContainerCodeExecutor(timeout=WALL, limits=Limits())
    started = time.perf_counter()
    result = await executor.execute_code(InvocationContext(), CodeExecutionInput(code))
    assert result.timed_out
    gone = await asyncio.to_thread(_wait_until_left, 0)
    return max(0.0, gone - started - WALL)


def _wait_until_left(count: int) -> float:
    """Until the engine has removed what ended; when it was asked the question it said so to."""
    while True:
        asked = time.perf_counter()
        if len(_listed()) <= count:
            return asked
        time.sleep(0.02)


def _listed() -> list[str]:
    asked = ["docker", "ps", "--all", "--quiet", f"--filter=name=hatchway-{os.getpid()}-"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()


def _deadline(what: str, seconds: Sequence[float]) -> Target:
    values = (max(seconds), median(seconds))
    return Target(what=f"{OURS}: past the deadline, code that {what}", limit=1, unit=" s", values=values)


def _unmeasured(why: str) -> Section:
    whats = {f"{OURS} ÷ by hand": 1.1, f"{POOL} ÷ by hand": 0.4, f"{OURS}: past the deadline": 1.0}
    targets = [Target(what=what, limit=limit) for what, limit in whats.items()]
    return Section(title="Containers", note=f"Not measured here: {why}.", targets=targets)


def _expect(printed: str) -> None:
    if printed != "2\n":
        raise ValueError(f"it gave {printed!r}")


def _ratios(seconds: Sequence[float], by_hand: Sequence[float]) -> tuple[float, float]:
    pairs = [ours / theirs for ours, theirs in zip(seconds, by_hand, strict=True)]
    return min(seconds) / min(by_hand), median(pairs)


def _spread(seconds: Sequence[float]) -> tuple[float, float]:
    return min(seconds), median(seconds)


if __name__ == "__main__":
    print(report(quick="--quick" in sys.argv).markdown())
