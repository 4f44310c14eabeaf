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
"""Does `n` of something and gives the seconds: of each, or their mean where only the whole can be timed."""
Jobs = Callable[[AsyncExitStack], Awaitable[Mapping[str, Job]]]
"""Sets a contender up; what it opens is closed at the end."""
Run = Callable[[str], Awaitable[object]]
"""Runs one action and gives its value."""


_marked = -1
_marks: list[float] = []


def add(a: int, b: int) -> int:
    """The smallest tool: what a call costs, and nothing else."""
    if _marked > 0 and (a == 0 or a == _marked):
        _marks.append(_cpu_seconds(os.getpid()))
    return a + b


async def add_async(a: int, b: int) -> int:
    """As `add`, for contenders whose tools are async."""
    return add(a, b)


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
        "calls": lambda n: _mean(n, lambda: run(calls.replace("MANY", str(n))), n),
        "calls_cpu": lambda n: _mean_cpu(n, lambda: run(calls.replace("MANY", str(n))), n),
        "action": lambda n: _each(n, lambda: run(add(1, 2)), 3),
        "fresh": lambda n: _each(n, lambda: run("1 + 1"), 2),
    }
    if nap is not None:
        source = f"import asyncio\nlen(await asyncio.gather(*[{nap('i')} for i in range(MANY)]))"
        jobs["gather"] = lambda n: _each(1, lambda: run(source.replace("MANY", str(n))), n)
    return jobs


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
    return [await timed(action, expected) for _ in range(n)]


async def _mean(n: int, action: Callable[[], Awaitable[object]], expected: object) -> list[float]:
    return [await timed(action, expected) / n]


async def _mean_cpu(n: int, action: Callable[[], Awaitable[object]], expected: object) -> list[float]:
    """As `_mean`, in seconds of CPU: from the first call to the last, of this process and all its descendants."""
    global _marked
    _marks.clear()
    _marked = n - 1
    try:
        await timed(action, expected)
    finally:
        _marked = -1
    return [(_marks[1] - _marks[0]) / (n - 1)]


def _cpu_seconds(pid: int) -> float:
    """What the kernel gave to a process and its descendants, to the nanosecond."""
    spent = 0.0
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        try:
            spent += int((thread / "schedstat").read_text().split()[0]) / 1e9
            children = (thread / "children").read_text().split()
        except OSError:
            continue  # it ended meanwhile
        spent += sum(_cpu_seconds(int(child)) for child in children)
    return spent
