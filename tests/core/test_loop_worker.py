"""A thread for blocking jobs: its outcome, its context, its end."""

import asyncio
import contextvars
import gc
import threading
import time
import weakref

import pytest

from hatchway.core.loop_worker import LEAST_PATIENCE, LoopWorker, Patience

pytestmark = pytest.mark.anyio


async def test_jobs_one_after_another_in_one_thread_with_the_callers_context() -> None:
    worker = LoopWorker("a name")
    variable = contextvars.ContextVar("variable", default=0)
    for n in range(100):
        variable.set(n)
        worker.start(lambda: (threading.current_thread().name, variable.get()))
        await worker.wait()
        assert worker.outcome() == ("a name", n)
    worker.dismiss()


async def test_an_error_is_raised_once_and_not_kept() -> None:
    worker = LoopWorker("a name")
    worker.start({}.__getitem__, "x")
    await worker.wait()
    with pytest.raises(KeyError, match="x"):
        worker.outcome()
    assert worker.outcome() is None
    worker.dismiss()


async def test_a_listener_may_be_told_too_early_but_never_too_late() -> None:
    worker = LoopWorker("a name")
    for seconds in (0.0, 0.0001, 0.001, 0.003) * 50:
        worker.start(time.sleep, seconds)
        async with asyncio.timeout(5):
            await worker.wait()
        worker.outcome()
    worker.dismiss()


async def test_an_idle_thread_keeps_no_job_alive() -> None:
    class Big:
        def look(self) -> None:
            pass

    worker, big = LoopWorker("a name"), Big()
    kept = weakref.ref(big)
    worker.start(big.look)
    await worker.wait()
    worker.outcome()
    del big
    await asyncio.sleep(0.05)
    gc.collect()
    assert kept() is None
    worker.dismiss()


async def test_dismissed_in_the_middle_of_a_job_it_ends_after_it() -> None:
    before = set(threading.enumerate())
    worker, done = LoopWorker("a name"), threading.Event()
    worker.start(lambda: (time.sleep(0.05), done.set()))
    await asyncio.sleep(0.01)
    worker.dismiss()
    worker.dismiss()
    async with asyncio.timeout(5):
        while set(threading.enumerate()) - before:
            await asyncio.sleep(0.01)
    assert done.is_set()


async def test_slow_jobs_are_stood_by_for_ever_more_rarely() -> None:
    worker, patience = LoopWorker("a name"), Patience()
    stood_by = 0
    for _ in range(5 * LEAST_PATIENCE):
        worker.start(time.sleep, 0.008)
        started = time.monotonic()
        if not patience.is_done_at_a_glance(worker):
            stood_by += time.monotonic() - started > 0.004
            await worker.wait()
        worker.outcome()
    assert stood_by <= 3
    worker.dismiss()
