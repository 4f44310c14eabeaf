"""Threads for blocking tools: reused, abandoned on cancel, never in the way of an exit."""

import asyncio
import contextvars
import subprocess
import sys
import threading
import time

import pytest

from hatchway.mode.threads import ToolThreads

pytestmark = pytest.mark.anyio


async def test_one_thread_serves_calls_one_after_another() -> None:
    threads = ToolThreads()
    idents = {await threads.run(threading.get_ident) for _ in range(20)}
    assert len(idents) == 1
    assert threading.get_ident() not in idents
    threads.close()


async def test_errors_and_context_come_through() -> None:
    threads = ToolThreads()
    variable = contextvars.ContextVar("variable", default=0)
    variable.set(7)
    assert await threads.run(variable.get) == 7

    def fail() -> None:
        raise StopIteration("odd")

    with pytest.raises(RuntimeError, match="StopIteration: odd"):
        await threads.run(fail)
    threads.close()


async def test_a_cancelled_wait_abandons_the_thread() -> None:
    threads = ToolThreads()
    task = asyncio.create_task(threads.run(lambda: time.sleep(0.3)))
    await asyncio.sleep(0.05)
    task.cancel()
    started = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 0.2
    assert await threads.run(lambda: 5) == 5
    threads.close()


def test_a_hanging_tool_does_not_keep_the_interpreter_from_exiting() -> None:
    code = """
import asyncio, time
from hatchway.mode.threads import ToolThreads
async def main():
    asyncio.ensure_future(ToolThreads().run(lambda: time.sleep(60)))
    await asyncio.sleep(0.1)
asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=10)


def test_closed_threads_end() -> None:
    async def use() -> None:
        threads = ToolThreads()
        await asyncio.gather(*[threads.run(lambda: time.sleep(0.01)) for _ in range(5)])
        threads.close()

    before = set(threading.enumerate())
    asyncio.run(use())
    deadline = time.monotonic() + 5
    while (left := set(threading.enumerate()) - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left == set()
