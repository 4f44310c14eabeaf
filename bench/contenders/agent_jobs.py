"""What agents are measured by, in the standard library: turns, calls with approval, cancelling, memory."""

from __future__ import annotations

import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from serving import Job, lasting

LOOP = "print('begun', flush=True)\nwhile True:\n    pass"


def agent_jobs(
    stream: Callable[[str], AsyncIterator[Any]],
    cancel: Callable[[], Awaitable[object]],
    calls: str | None,
) -> dict[str, Job]:
    """The jobs of one agent.

    Args:
        stream: The events of a turn whose model runs the prompt as its code; everything asked is approved.
        cancel: Ends the running turn.
        calls: Code that makes `MANY` calls.
    """

    async def turn(code: str) -> None:
        async for event in stream(code):
            if type(event).__name__ == "ApprovalRequest":
                event.approve(True)

    async def turns(n: int) -> list[float]:
        found: list[float] = []
        for _ in range(n):
            began = time.perf_counter()
            await turn("1 + 1")
            found.append(time.perf_counter() - began)
        return found

    async def cancelled(n: int) -> list[float]:
        found: list[float] = []
        for _ in range(n):
            asked = await _cancelled(stream(LOOP), cancel)
            found.append(time.perf_counter() - asked)
        return found

    async def again(n: int) -> list[float]:
        found: list[float] = []
        for _ in range(n):
            asked = await _cancelled(stream(LOOP), cancel)
            await turn("1 + 1")
            found.append(time.perf_counter() - asked)
        return found

    async def weight(n: int) -> list[float]:
        return [pss(os.getpid())]

    jobs: dict[str, Job] = {"turn": turns, "cancel": cancelled, "again": again, "weight": weight}
    if calls is not None:
        jobs["approved"] = lambda n: lasting(n, lambda: turn(calls.replace("MANY", str(n))))
    return jobs


async def _cancelled(events: AsyncIterator[Any], cancel: Callable[[], Awaitable[object]]) -> float:
    """When it was asked for; the stream has ended when this returns."""
    asked = 0.0
    async for event in events:
        match type(event).__name__:
            case "ApprovalRequest":
                event.approve(True)
            case "CodeExecutionOutputChunk" if not asked:
                asked = time.perf_counter()
                await cancel()
            case _:
                pass
    return asked


def pss(pid: int) -> float:
    """Megabytes of a process and its descendants, what they share counted once."""
    try:
        told = Path(f"/proc/{pid}/smaps_rollup").read_text()
        own = next(int(line.split()[1]) for line in told.splitlines() if line.startswith("Pss:")) / 1000
    except (OSError, StopIteration):
        own = 0.0
    children = [child for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()]
    return own + sum(pss(int(child)) for child in children)


async def scripted(messages: list[Any], info: Any, make_call: Callable[[str, str], Any]) -> AsyncIterator[Any]:
    """A model of no latency: runs the prompt as code, then says that it is done."""
    part = messages[-1].parts[-1]
    if part.part_kind == "user-prompt":
        yield {0: make_call(json.dumps({"code": part.content}), f"call-{len(messages)}")}
    else:
        yield "done"
