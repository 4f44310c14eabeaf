"""The wall clock: it ends whatever runs too long, and stands while the code waits on the host."""

from __future__ import annotations

import asyncio
import time

from hatchway.core.errors import CodeTimeoutError
from hatchway.core.limits import Limits
from hatchway.core.sandbox import CodeSandbox
from hatchway.testing.conformance.checks import FULL_LIBRARY, check
from hatchway.testing.conformance.drive import (
    LOOKUP,
    failure,
    next_call,
    next_calls,
    next_result,
    next_waiting,
    started,
    still_works,
)
from hatchway.testing.conformance.expect import SLACK_SECONDS, contains, equal, fail, raises, shown

HALF = Limits(wall_seconds=0.5)


async def _times_out(sandbox: CodeSandbox, code: str) -> CodeTimeoutError:
    begun = time.monotonic()
    error = await failure(sandbox, CodeTimeoutError, code, limits=HALF)
    took = time.monotonic() - begun
    if not 0.4 <= took <= 0.5 + SLACK_SECONDS:
        fail(f"wall_seconds=0.5 struck after {took:.2f} s")
    return error


@check("an endless loop ends in CodeTimeoutError, which names wall_seconds")
async def check_endless_loop(sandbox: CodeSandbox) -> None:
    error = await _times_out(sandbox, "while True:\n    pass")
    contains("the error", str(error), "wall_seconds")
    await still_works(sandbox)


@check("a sleep past the limit ends in CodeTimeoutError", needs=("import time",))
async def check_sleep(sandbox: CodeSandbox) -> None:
    await _times_out(sandbox, "import time\ntime.sleep(60)")


@check("an async sleep past the limit ends in CodeTimeoutError", needs=("import asyncio",))
async def check_async_sleep(sandbox: CodeSandbox) -> None:
    await _times_out(sandbox, "import asyncio\nawait asyncio.sleep(60)")


@check("work inside one builtin that never returns ends in CodeTimeoutError")
async def check_endless_builtin(sandbox: CodeSandbox) -> None:
    await _times_out(sandbox, "sum(range(10**15))")


@check("code that catches everything cannot outlive its time")
async def check_cannot_be_caught(sandbox: CodeSandbox) -> None:
    code = """
        while True:
            try:
                while True:
                    pass
            except BaseException:
                pass
            finally:
                pass
    """
    await _times_out(sandbox, code)


@check("code that ignores signals cannot outlive its time", needs=(FULL_LIBRARY,))
async def check_ignores_signals(sandbox: CodeSandbox) -> None:
    code = """
        import signal, time
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        while True:
            time.sleep(0.01)
    """
    await _times_out(sandbox, code)


@check("threads that never end do not keep the execution alive", needs=("supports_threads",))
async def check_endless_thread(sandbox: CodeSandbox) -> None:
    code = """
        import threading, time
        def spin():
            while True:
                time.sleep(0.01)
        threading.Thread(target=spin).start()
        while True:
            time.sleep(0.01)
    """
    await _times_out(sandbox, code)


@check("the clock stands while the host answers a call")
async def check_stands_while_waiting(sandbox: CodeSandbox) -> None:
    for functions, code in ((["lookup"], "lookup() + lookup()"), ([LOOKUP], "await lookup() + await lookup()")):
        async with started(sandbox, code, functions, limits=HALF) as execution:
            for _ in range(2):
                await next_call(execution)
                await asyncio.sleep(0.8)
                await execution.provide_result(21)
            result = await next_result(execution)
        equal("the output", result.output, 42)
        if result.usage.wall_seconds > 0.5:
            fail(f"usage.wall_seconds counts waiting on the host: {shown(result.usage)}")


@check("the clock stands while next() says Waiting for parallel calls", needs=("import asyncio",))
async def check_stands_while_gathering(sandbox: CodeSandbox) -> None:
    code = "import asyncio\nawait asyncio.gather(lookup(1), lookup(2))"
    async with started(sandbox, code, [LOOKUP], limits=HALF) as execution:
        calls = await next_calls(execution, 2)
        for call in calls:
            await next_waiting(execution)
            await asyncio.sleep(0.8)
            await execution.provide_result(call.args[0], call_id=call.call_id)
        equal("the output", (await next_result(execution)).output, [1, 2])


@check("the limit strikes although the host does not ask, and the error is there when it does", needs=("import time",))
async def check_strikes_unasked(sandbox: CodeSandbox) -> None:
    code = "import time\nwhile True:\n    print('tick')\n    time.sleep(0.05)"
    async with started(sandbox, code, limits=HALF) as execution:
        await asyncio.sleep(2.0)
        try:
            fail(f"expected CodeTimeoutError, got {shown(await execution.next())}")
        except CodeTimeoutError as e:
            ticks = e.stdout.count("tick")
    if not 1 <= ticks <= 20:
        fail(f"the code ticked {ticks} times, every 0.05 s: it did not stop after 0.5 s but when the host asked")


@check("the clock stands at a call from the moment it is made, not only once the host has taken it")
async def check_stands_until_taken(sandbox: CodeSandbox) -> None:
    async with started(sandbox, "ping()\nping()\n'done'", ["ping"], limits=HALF) as execution:
        for _ in range(2):
            await asyncio.sleep(0.8)
            await next_call(execution)
            await execution.provide_result(None)
        await asyncio.sleep(0.8)
        equal("the output", (await next_result(execution)).output, "done")


@check("the clock is one for the whole execution: calls do not wind it up again", needs=("import time",))
async def check_not_rewound(sandbox: CodeSandbox) -> None:
    code = "import time\nfor i in range(20):\n    time.sleep(0.1)\n    ping()"
    calls = 0
    async with started(sandbox, code, ["ping"], limits=HALF) as execution:
        with raises(CodeTimeoutError, "twenty pauses of 0.1 s under wall_seconds=0.5"):
            for calls in range(21):  # noqa: B007
                await next_call(execution)
                await execution.provide_result(None)
    if not 1 <= calls <= 6:
        fail(f"{calls} calls of 0.1 s each passed under wall_seconds=0.5")


@check("time the code burns in another thread while it waits on the host counts", needs=("supports_threads",))
async def check_burning_while_waiting(sandbox: CodeSandbox) -> None:
    code = """
        import threading
        def burn():
            while True:
                pass
        threading.Thread(target=burn, daemon=True).start()
        ping()
    """
    async with started(sandbox, code, ["ping"], limits=Limits(wall_seconds=1.5)) as execution:
        await next_call(execution)  # the burning thread lets the call through when it likes
        with raises(CodeTimeoutError, "30 s of burning CPU while a call is unanswered"):
            for _ in range(300):
                await next_waiting(execution)
                await asyncio.sleep(0.1)


@check("the error of a timeout comes again when asked again")
async def check_timeout_repeats(sandbox: CodeSandbox) -> None:
    async with started(sandbox, "print('x')\nwhile True:\n    pass", limits=HALF) as execution:
        for _ in range(3):
            with raises(CodeTimeoutError, "next() after the time was over", "wall_seconds"):
                await execution.next()
