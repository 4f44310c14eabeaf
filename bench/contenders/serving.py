"""A contender: one process that does a job when it is told to and answers with the seconds it took.

Runs in the peers' environments as well, so it uses the standard library only.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

Job = Callable[[int], Awaitable[list[float]]]
"""Does `n` of something and gives the seconds each took; of calls, seconds and seconds of CPU per call."""
Jobs = Callable[[AsyncExitStack], Awaitable[Mapping[str, Job]]]
"""Sets a contender up; what it opens is closed at the end."""
Run = Callable[[str], Awaitable[object]]
"""Runs one action and gives its value."""


SETTLE = 0.2
"""Seconds the first of many calls takes, for whatever a new action starts in the background to come to an end."""


BREATH = 0.01
"""Seconds between actions, not counted: a model takes longer to write the next one, and pools fill up meanwhile."""


class Window:
    """What passes from the first of many calls to the last, so that starting and ending an action do not count."""

    def __init__(self) -> None:
        self.last = -1
        self.marks: list[tuple[float, float]] = []

    def begin(self) -> None:
        """At the first call."""
        cpu = _cpu_seconds(os.getpid())
        self.marks = [(time.perf_counter(), cpu)]

    def end(self) -> None:
        """At the last call."""
        now = time.perf_counter()
        self.marks.append((now, _cpu_seconds(os.getpid())))


window = Window()


def add(a: int, b: int) -> int:
    """The smallest tool: what a call costs, and nothing else."""
    if a == 0:
        time.sleep(SETTLE)
        window.begin()
    elif a == window.last:
        window.end()
    return a + b


async def add_async(a: int, b: int) -> int:
    """As `add`, for contenders whose tools are async."""
    if a == 0:
        await asyncio.sleep(SETTLE)
        window.begin()
    elif a == window.last:
        window.end()
    return a + b


async def nap(i: int) -> int:
    """A tool of 10 ms."""
    await asyncio.sleep(0.01)
    return i


def actions(run: Run, add: Callable[[object, object], str], nap: Callable[[str], str] | None) -> dict[str, Job]:
    """The jobs every contender is measured by, in its own dialect.

    Args:
        run: Runs one action.
        add: The source of a call of `add` with these arguments.
        nap: The source of a call of `nap`, not awaited; None where code cannot make parallel calls.
    """
    calls = f"total = 0\nfor i in range(MANY):\n    total = {add('i', 1)}\ntotal"
    jobs: dict[str, Job] = {
        "calls": lambda n: _per_call(n, lambda: run(calls.replace("MANY", str(n))), n),
        "action": lambda n: _each(n, lambda: run(add(1, 2)), 3),
        "fresh": lambda n: _each(n, lambda: run("1 + 1"), 2),
    }
    if nap is not None:
        source = f"import asyncio\nlen(await asyncio.gather(*[{nap('i')} for i in range(MANY)]))"
        jobs["gather"] = lambda n: _each(1, lambda: run(source.replace("MANY", str(n))), n)
    return jobs


async def loop_gaps(n: int, run: Run) -> list[float]:
    """The longest time the event loop stood still while code counted for a while, of each of `n` actions.

    Without the time its thread waited for a core, where the system tells it.
    """
    return [await _longest_gap(run) for _ in range(n)]


async def _longest_gap(run: Run) -> float:
    running = asyncio.ensure_future(run("total = 0\nfor i in range(2_000_000):\n    total += i\n1"))
    longest, last, waited = 0.0, time.perf_counter(), _waited_for_a_core()
    while not running.done():
        await asyncio.sleep(0.001)
        now, waited_now = time.perf_counter(), _waited_for_a_core()
        longest = max(longest, now - last - (waited_now - waited))
        last, waited = now, waited_now
    await running
    return longest


def _waited_for_a_core() -> float:
    """Seconds this thread was ready and others had the cores: that is not the fault of whoever runs here."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


def serve(jobs: Jobs) -> None:
    """Answer the bench's requests, one JSON line each, until it closes our stdin."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # some peers print to stdout: that must not mix with the answers
    asyncio.run(_serve(jobs, lambda answer: print(json.dumps(answer), file=answers, flush=True)))


async def _serve(jobs: Jobs, answer: Callable[[object], None]) -> None:
    async with AsyncExitStack() as stack:
        offered = await jobs(stack)
        answer({"jobs": sorted(offered)})
        while line := await asyncio.to_thread(sys.stdin.readline):
            request = json.loads(line)
            try:
                answer({"seconds": await offered[request["job"]](request["n"])})
            except Exception as e:
                answer({"error": f"{type(e).__name__}: {e}"})


async def timed(action: Callable[[], Awaitable[object]], expected: object) -> float:
    """The seconds one action takes. A contender that gives another result than the others is not measured."""
    started = time.perf_counter()
    got = await action()
    seconds = time.perf_counter() - started
    if got != expected:
        raise ValueError(f"the action gave {got!r}, not {expected!r}")
    return seconds


async def _each(n: int, action: Callable[[], Awaitable[object]], expected: object) -> list[float]:
    seconds: list[float] = []
    for _ in range(n):
        await asyncio.sleep(BREATH)
        seconds.append(await timed(action, expected))
    return seconds


async def lasting(n: int, act: Callable[[], Awaitable[object]]) -> list[float]:
    """As a job of calls, for something that makes `n` calls and is as long as they are."""
    began, cpu = time.perf_counter(), _cpu_seconds(os.getpid())
    await act()
    return [(time.perf_counter() - began) / n, (_cpu_seconds(os.getpid()) - cpu) / n]


async def _per_call(n: int, action: Callable[[], Awaitable[object]], expected: object) -> list[float]:
    """Seconds, and seconds of CPU of this process and all its descendants, per call."""
    window.last = n - 1
    await timed(action, expected)
    (began, cpu_before), (ended, cpu_after) = window.marks
    return [(ended - began) / (n - 1), (cpu_after - cpu_before) / (n - 1)]


def _cpu_seconds(pid: int) -> float:
    """What a process and its descendants have used: of the others as the kernel noted when they went to sleep."""
    spent = time.process_time() if pid == os.getpid() else 0.0
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        try:
            if pid != os.getpid():
                spent += int((thread / "schedstat").read_text().split()[0]) / 1e9
            children = (thread / "children").read_text().split()
        except OSError:
            continue  # it ended meanwhile
        spent += sum(_cpu_seconds(int(child)) for child in children)
    return spent
