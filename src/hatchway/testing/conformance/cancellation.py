"""Cancellation: the code is dead when `cancel` returns, and no await of the host's is stuck."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable

from hatchway.core.calls import FunctionCall
from hatchway.core.errors import CodeExecutionError, HatchwayError
from hatchway.core.sandbox import CodeExecution, CodeSandbox
from hatchway.testing.conformance.checks import check
from hatchway.testing.conformance.drive import (
    LOOKUP,
    answer,
    finish,
    next_call,
    next_calls,
    next_result,
    started,
    still_works,
)
from hatchway.testing.conformance.expect import SLACK_SECONDS, equal, fail, raises, shown

SPIN = "print('begun')\nwhile True:\n    pass"


async def _quickly(what: str, awaited: Awaitable[object]) -> None:
    begun = time.monotonic()
    await awaited
    took = time.monotonic() - begun
    if took > SLACK_SECONDS:
        fail(f"{what} took {took:.2f} s")


async def _is_over(execution: CodeExecution, what: str) -> None:
    try:
        async with asyncio.timeout(SLACK_SECONDS):
            fail(f"{what}: expected an error from next(), got {shown(await execution.next())}")
    except TimeoutError:
        fail(f"{what}: next() hangs")
    except CodeExecutionError:
        return
    except HatchwayError as e:
        fail(f"{what}: expected a CodeExecutionError from next(), got {type(e).__name__}: {shown(str(e))}")


@check("code that spins can be cancelled, and next() raises afterwards")
async def check_running(sandbox: CodeSandbox) -> None:
    async with started(sandbox, SPIN) as execution:
        pulling = asyncio.ensure_future(execution.next())
        await asyncio.sleep(0.2)
        await _quickly("cancel() of spinning code", execution.cancel())
        await asyncio.wait({pulling}, timeout=SLACK_SECONDS)
        if not pulling.done():
            pulling.cancel()
            fail("a next() that was under way hangs after cancel()")
        if not isinstance(pulling.exception(), CodeExecutionError):
            fail(f"a next() under way gave {shown(pulling.exception() or pulling.result())} after cancel()")
        await _is_over(execution, "after cancel()")
    await still_works(sandbox)


@check("code that was never asked for its first event can be cancelled")
async def check_before_next(sandbox: CodeSandbox) -> None:
    async with started(sandbox, SPIN) as execution:
        await _quickly("cancel() before next()", execution.cancel())
        await _is_over(execution, "after cancel() before next()")


@check("code that waits for an answer can be cancelled; the answer is then refused")
async def check_waiting(sandbox: CodeSandbox) -> None:
    async with started(sandbox, "ping()", ["ping"]) as execution:
        call = await next_call(execution)
        await _quickly("cancel() of waiting code", execution.cancel())
        with raises(ValueError, "a result after cancel()"):
            await execution.provide_result(1, call_id=call.call_id)
        await _is_over(execution, "after cancel() while waiting")


@check("code that waits for many parallel answers can be cancelled", needs=("import asyncio",))
async def check_many_waiting(sandbox: CodeSandbox) -> None:
    code = "import asyncio\nawait asyncio.gather(*[lookup(i) for i in range(50)])"
    async with started(sandbox, code, [LOOKUP]) as execution:
        await next_calls(execution, 50)
        await _quickly("cancel() with 50 calls pending", execution.cancel())
        await _is_over(execution, "after cancel() with 50 calls pending")


@check("cancel() may be called twice, also at the same time")
async def check_twice(sandbox: CodeSandbox) -> None:
    async with started(sandbox, SPIN) as execution:
        await asyncio.gather(execution.cancel(), execution.cancel())
        await execution.cancel()
        await _is_over(execution, "after three cancels")


@check("cancel() after the end changes nothing: the result is still given")
async def check_after_end(sandbox: CodeSandbox) -> None:
    async with started(sandbox, "print('x')\n7") as execution:
        result = await next_result(execution)
        await execution.cancel()
        equal("the result after cancel()", await execution.next(), result)


@check("what was printed before cancel() is in the error")
async def check_keeps_stdout(sandbox: CodeSandbox) -> None:
    async with started(sandbox, "print('before')\nping()", ["ping"]) as execution:
        await next_call(execution)
        await execution.cancel()
        try:
            await execution.next()
        except CodeExecutionError as e:
            equal("error.stdout", e.stdout, "before\n")
        else:
            fail("expected an error from next() after cancel()")


@check("a task cancelled at next() loses nothing: the next next() gives what came", needs=("import time",))
async def check_next_cancelled(sandbox: CodeSandbox) -> None:
    code = "import time\ngot = []\nfor i in range(5):\n    time.sleep(0.1)\n    got.append(ping(i))\ngot"
    seen: list[int] = []

    def ping(n: int) -> int:
        seen.append(n)
        return n * n

    async with started(sandbox, code, ["ping"]) as execution:
        for _ in range(6):
            if (came := await _given_up(execution)) is not None:  # a busy machine: it came in time
                await answer(execution, came, {"ping": ping})
        result = await finish(execution, {"ping": ping})
    equal("the calls", seen, [0, 1, 2, 3, 4])
    equal("the output", result.output, [0, 1, 4, 9, 16])


async def _given_up(execution: CodeExecution) -> FunctionCall | None:
    """Ask, and lose patience: what comes afterwards belongs to whoever asks next."""
    pulling = asyncio.ensure_future(next_call(execution))
    await asyncio.sleep(0.01)
    pulling.cancel()
    await asyncio.wait({pulling})
    return None if pulling.cancelled() else pulling.result()


@check("a task cancelled while code spins leaves the sandbox usable")
async def check_task_cancelled(sandbox: CodeSandbox) -> None:
    async def drive() -> None:
        async with started(sandbox, SPIN) as execution:
            await execution.next()

    for _ in range(3):
        task = asyncio.ensure_future(drive())
        await asyncio.sleep(0.1)
        task.cancel()
        _, late = await asyncio.wait({task}, timeout=SLACK_SECONDS)
        if late or not task.cancelled():
            fail("a task that drives spinning code does not end when it is cancelled")
    await still_works(sandbox)


@check("a task cancelled at execute() leaves the sandbox usable")
async def check_execute_cancelled(sandbox: CodeSandbox) -> None:
    for delay in (0, 0.001, 0.005, 0.02):
        task = asyncio.ensure_future(sandbox.execute(SPIN))
        await asyncio.sleep(delay)
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and task.exception() is None:
            await task.result().cancel()
    await still_works(sandbox)


@check("aclose() kills what still runs, may be called twice, and next() raises afterwards", fresh=True)
async def check_aclose(sandbox: CodeSandbox) -> None:
    running = await sandbox.execute(SPIN)
    waiting = await sandbox.execute("ping()", ["ping"])
    await next_call(waiting)
    await _quickly("aclose()", sandbox.aclose())
    await sandbox.aclose()
    for execution in (running, waiting):
        try:
            async with asyncio.timeout(SLACK_SECONDS):
                fail(f"next() after aclose() gave {shown(await execution.next())}")
        except HatchwayError:
            continue


@check("`async with sandbox` gives the sandbox and closes it", fresh=True)
async def check_async_with(sandbox: CodeSandbox) -> None:
    async with sandbox as entered:
        if entered is not sandbox:
            fail("`async with sandbox as s` binds something else than the sandbox")
        execution = await sandbox.execute(SPIN)
    with raises(HatchwayError, "next() after the block"):
        await execution.next()


@check("execute() after aclose() either works or says why not with an error of Hatchway's", fresh=True)
async def check_after_aclose(sandbox: CodeSandbox) -> None:
    await still_works(sandbox)
    await sandbox.aclose()
    try:
        await still_works(sandbox)
    except HatchwayError:
        return
    await sandbox.aclose()
