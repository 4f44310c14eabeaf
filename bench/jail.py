"""The jail: how fast a sealed process is there, what it weighs, and how fast code runs in it."""

from __future__ import annotations

import asyncio
import compileall
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from statistics import median

from rounds import contenders, interleaved
from tables import Section, Target, duration

import hatchway
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeSandbox
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.monty import MontySandbox
from hatchway.sandboxes.process.inside import tree

PYTHON = [sys.executable, "-I", "-S", "-c", "1 + 1"]
BREATH = 0.01
"""Seconds between two actions where each is measured for itself, so that the pool is full again."""
LOOP = """\
import time
def work():
    n = 0
    for i in range(3_000_000):
        n += i * i
started = time.process_time()
work()
spent = time.process_time() - started
spent"""
NOTE = """\
`1 + 1` in a fresh sealed process from a warm pool, {n} times with {breath:g} ms in between, then {many} times without
a pause; beside it a fresh interpreter started by hand, the same in bubblewrap, in a container where an engine is up,
and Monty. Memory is the proportional set size as the kernel tells it. The CPU-bound loop is compared with the same loop
in this process by the CPU time each takes, in turn, best of 7. Our files are compiled beforehand, as an installer does.
One call is measured as in the table of calls and judged by the idle median, which wakes a core twice. What ten
thousand actions leave behind is counted by `leaks.py`."""


def report(*, quick: bool) -> Section:
    """The section of the report; without a usable jail there is nothing to measure."""
    availability = JailSandbox.probe()
    n, many = (60, 100) if quick else (300, 1000)
    note = NOTE.format(n=n, many=many, breath=BREATH * 1e3)
    if availability.state != "usable":
        return Section(title="Jail", note=f"{note}\n\nNot usable here: {availability.reason}")
    rows = [[name, *map(duration, _spread(seconds))] for name, seconds in _others(10 if quick else 40).items()]
    compileall.compile_dir(Path(hatchway.__file__).parent, quiet=2)
    targets = asyncio.run(_targets(n, many, _calls(quick)))
    return Section(
        title=f"Jail, tier {availability.tier}",
        note=note,
        head=["`1 + 1`, fresh", "min", "median", "99 of 100"],
        rows=rows,
        columns=("min", "median", "99 of 100"),
        targets=targets,
    )


async def _targets(n: int, many: int, calls: Sequence[float]) -> list[Target]:
    cold = [await _cold() for _ in range(5)]
    async with JailSandbox() as sandbox:
        fresh = await _each(sandbox, n)
        started = time.perf_counter()
        await asyncio.gather(*[_row(sandbox, many // 2) for _ in range(2)])
        rate = many / (time.perf_counter() - started)
        native = await _native(sandbox)
        lost = await _lost(sandbox)
    child, zygote, alive = await _memory()
    return [
        _milliseconds("a fresh sealed action, median", 1.0, fresh, judged=1),
        _milliseconds("a fresh sealed action, 99 of 100", 5.0, fresh, judged=2),
        Target(what="fresh sealed actions per second, two at a time", limit=300, values=(rate,), at_least=True),
        _milliseconds("cold start of the sandbox to its first result", 150.0, cold, judged=1),
        Target(what="one call through the gate: CPU, busy core, idle", limit=100, unit=" µs", values=calls, judged=2),
        Target(what="a CPU-bound loop ÷ the same without a jail", limit=1.05, unit="×", values=(native,)),
        Target(what="calls lost of 50 actions with 100 calls each", limit=0, values=(lost,)),
        Target(what="memory of an idle child", limit=2.0, unit=" MB", values=(child,)),
        Target(what="memory of the zygote", limit=30.0, unit=" MB", values=(zygote,)),
        Target(what="sessions alive at once", limit=100, values=(alive,), at_least=True),
    ]


async def _each(sandbox: CodeSandbox, n: int) -> list[float]:
    """Seconds of single actions, the first one not counted."""
    await _run(sandbox)
    seconds: list[float] = []
    for _ in range(n):
        await asyncio.sleep(BREATH)
        seconds.append(await _timed(lambda: _run(sandbox)))
    return seconds


async def _row(sandbox: CodeSandbox, n: int) -> None:
    for _ in range(n):
        await _run(sandbox)


async def _run(sandbox: CodeSandbox, code: str = "1 + 1") -> object:
    execution = await sandbox.execute(code)
    result = await execution.next()
    assert isinstance(result, ExecutionResult)
    return result.output


async def _cold() -> float:
    async with JailSandbox() as sandbox:
        return await _timed(lambda: _run(sandbox))


async def _native(sandbox: CodeSandbox) -> float:
    """CPU seconds of a loop inside ÷ outside."""
    inside: list[float] = []
    outside: list[float] = []
    for _ in range(7):
        spent = await _run(sandbox, LOOP)
        assert isinstance(spent, float)
        inside.append(spent)
        names: dict[str, float] = {}
        exec(LOOP, names)
        outside.append(names["spent"])
    return min(inside) / min(outside)


def _calls(quick: bool) -> tuple[float, float, float]:
    """Microseconds of one call: CPU and time at best on a busy core, and the usual time on the machine as it is."""
    busy, idle = (2, 2) if quick else (7, 5)
    with contenders({"jail": "hatchway_gate jail async"}, []) as found:
        samples = interleaved(found, "calls", 300 if quick else 1000, busy=busy, idle=idle)["jail"]
    best = samples.busy or samples.idle
    return min(best[1::2]) * 1e6, min(best[::2]) * 1e6, median(samples.idle[::2]) * 1e6


async def _lost(sandbox: CodeSandbox) -> int:
    """Calls of 50 actions at once that never reached the host, of 5000."""
    seen = 0

    async def action() -> None:
        nonlocal seen
        execution = await sandbox.execute("for i in range(100):\n    tool(i)", ["tool"])
        while not isinstance(event := await execution.next(), ExecutionResult):
            seen += 1
            await execution.provide_result(None, call_id=getattr(event, "call_id", None))

    await asyncio.gather(*[action() for _ in range(50)])
    return 5000 - seen


async def _memory() -> tuple[float, float, int]:
    """Megabytes of an idle child and of the zygote, and how many sessions could be alive at once."""
    async with JailSandbox(spares=0) as sandbox:
        sessions = [sandbox.session() for _ in range(100)]
        try:
            opened = [await session.__aenter__() for session in sessions]
            pids = list(tree.descendants(os.getpid()))
            sizes = sorted((tree.proportional_bytes(pid) / 1e6 for pid in pids), reverse=True)
            guests = [size for pid in pids if (size := tree.proportional_bytes(pid) / 1e6) and _is_guest(pid)]
            return median(guests), sizes[0], len(opened)
        finally:
            for session in sessions:
                await session.__aexit__(None, None, None)


def _is_guest(pid: int) -> bool:
    """Whether it is sealed: nothing else here has a system call filter."""
    try:
        return "Seccomp:\t2" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def _others(n: int) -> dict[str, list[float]]:
    """The same by other means, where they are installed."""
    found = {"`python -I -S -c`": [_seconds(lambda: _spawned(PYTHON)) for _ in range(n)]}
    if shutil.which("bwrap"):
        command = ["bwrap", "--unshare-all", "--clearenv", "--cap-drop", "ALL", "--ro-bind", "/", "/", *PYTHON]
        if _spawned(command):
            found["bubblewrap and `python -I -S -c`"] = [_seconds(lambda: _spawned(command)) for _ in range(n)]
    if image := _image():
        container = ["docker", "run", "--rm", "--network=none", image, "python3", "-I", "-S", "-c", "1 + 1"]
        found["`docker run`"] = [_seconds(lambda: _spawned(container)) for _ in range(5)]
    return found | {"Monty": asyncio.run(_monty(n))}


async def _monty(n: int) -> list[float]:
    async with MontySandbox() as sandbox:
        return await _each(sandbox, n)


def _image() -> str:
    """An image of the running engine that has Python; empty without an engine."""
    if not shutil.which("docker"):
        return ""
    command = ["docker", "images", "--format", "{{.Repository}}:{{.Tag}}"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    return next((name for name in told.stdout.split() if "python" in name), "")


def _spawned(command: Sequence[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _milliseconds(what: str, limit: float, seconds: Sequence[float], *, judged: int) -> Target:
    return Target(what=what, limit=limit, unit=" ms", values=[s * 1e3 for s in _spread(seconds)], judged=judged)


def _spread(seconds: Sequence[float]) -> tuple[float, float, float]:
    ordered = sorted(seconds)
    return ordered[0], median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


async def _timed(action: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await action()
    return time.perf_counter() - started


def _seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


if __name__ == "__main__":
    print(report(quick="--quick" in sys.argv).markdown())
