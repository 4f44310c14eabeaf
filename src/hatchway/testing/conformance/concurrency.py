"""Concurrency: many executions at once, none mixed, none lost, and the host's event loop stays alive."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack

from hatchway.core.calls import FunctionCall
from hatchway.core.errors import CodeExecutionError, CodeTimeoutError
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeSandbox
from hatchway.testing.conformance.checks import check
from hatchway.testing.conformance.drive import LOOKUP, failure, finish, next_call, next_result, ping, run, started
from hatchway.testing.conformance.expect import equal, fail

TEN_CALLS = """
    got = []
    for i in range(10):
        print(me, i)
        got.append(ask(me, i))
    got
"""


@check("fifty executions at once with ten calls each: every answer and every line reaches its own", seconds=60)
async def check_fifty(sandbox: CodeSandbox) -> None:
    async def ask(who: int, i: int) -> list[int]:
        await asyncio.sleep(0.001 * ((who * 7 + i) % 5))
        return [who, i]

    async def one(me: int) -> ExecutionResult:
        async with started(sandbox, TEN_CALLS, ["ask"], inputs={"me": me}) as execution:
            return await finish(execution, {"ask": ask})

    results = await asyncio.gather(*[one(me) for me in range(50)])
    for me, result in enumerate(results):
        equal(f"the output of execution {me}", result.output, [[me, i] for i in range(10)])
        equal(f"the stdout of execution {me}", result.stdout, "".join(f"{me} {i}\n" for i in range(10)))
        equal(f"the calls of execution {me}", result.usage.calls, 10)


@check("fifty executions can all wait for an answer at the same time", seconds=60)
async def check_fifty_waiting(sandbox: CodeSandbox) -> None:
    async with AsyncExitStack() as stack:
        blocks = [started(sandbox, "ask(me)", ["ask"], inputs={"me": me}) for me in range(50)]
        executions = [await stack.enter_async_context(block) for block in blocks]
        calls = [await next_call(execution) for execution in executions]
        equal("who asks", [call.args[0] for call in calls], list(range(50)))
        for me, execution in reversed(list(enumerate(executions))):
            await execution.provide_result(me * 2)
        outputs = [(await next_result(execution)).output for execution in executions]
        equal("the outputs", outputs, [me * 2 for me in range(50)])


@check("an error, a timeout or a cancel in one execution leaves its neighbours alone", needs=("import time",))
async def check_neighbours(sandbox: CodeSandbox) -> None:
    calm = "import time\nfor i in range(8):\n    time.sleep(0.1)\n    ping(i)\n'calm'"

    async def neighbour() -> object:
        return (await run(sandbox, calm, {"ping": ping})).output

    async def cancelled() -> object:
        async with started(sandbox, "while True:\n    pass") as execution:
            await asyncio.sleep(0.2)
            await execution.cancel()
        return None

    troubled = [
        failure(sandbox, CodeExecutionError, "1 / 0"),
        failure(sandbox, CodeTimeoutError, "while True:\n    pass", limits=Limits(wall_seconds=0.3)),
        cancelled(),
    ]
    outputs = await asyncio.gather(*[neighbour() for _ in range(3)], *troubled)
    equal("the neighbours' outputs", outputs[:3], ["calm"] * 3)


@check("the host's event loop is not blocked while code spins")
async def check_loop_alive(sandbox: CodeSandbox) -> None:
    gaps: list[float] = []
    for _ in range(3):  # a busy machine makes gaps too: the best of three counts
        watch = asyncio.ensure_future(_longest_gap())
        await asyncio.sleep(0)  # the watch begins now, not after the first gap
        await failure(sandbox, CodeTimeoutError, "while True:\n    pass", limits=Limits(wall_seconds=0.5))
        watch.cancel()
        gaps.append(await watch)
        if gaps[-1] <= 0.25:
            return
    fail(f"the event loop stood still for {min(gaps):.2f} s while code was spinning")


async def _longest_gap() -> float:
    longest, last = 0.0, time.monotonic()
    try:
        while True:
            await asyncio.sleep(0.005)
            now = time.monotonic()
            longest, last = max(longest, now - last), now
    except asyncio.CancelledError:
        return max(longest, time.monotonic() - last)


@check("calls of different executions are told apart, also with the same names and arguments")
async def check_told_apart(sandbox: CodeSandbox) -> None:
    async with started(sandbox, "ask(1)", ["ask"]) as first, started(sandbox, "ask(1)", ["ask"]) as second:
        one, two = await next_call(first), await next_call(second)
        await second.provide_result("second", call_id=two.call_id)
        await first.provide_result("first", call_id=one.call_id)
        outputs = [(await next_result(first)).output, (await next_result(second)).output]
    equal("the outputs", outputs, ["first", "second"])


@check("forty executions one after another leave nothing behind that the next can see")
async def check_forty_in_a_row(sandbox: CodeSandbox) -> None:
    code = "try:\n    seen = mark\nexcept NameError:\n    seen = None\nmark = me\nseen"
    for me in range(40):
        equal(f"what execution {me} sees", (await run(sandbox, code, inputs={"me": me})).output, None)


@check("calls may be answered by other tasks while one is pulling", needs=("import asyncio",))
async def check_answers_while_pulling(sandbox: CodeSandbox) -> None:
    code = """
        import asyncio
        async def chain(n):
            for _ in range(5):
                n = await lookup(n)
            return n
        await asyncio.gather(*[chain(n) for n in range(20)])
    """
    async with started(sandbox, code, [LOOKUP]) as execution, asyncio.TaskGroup() as answering:

        async def answer(call: FunctionCall) -> None:
            await asyncio.sleep(0.001 * (call.args[0] % 3))
            await execution.provide_result(call.args[0] + 1, call_id=call.call_id)

        while not isinstance(came := await execution.next(), ExecutionResult):
            if isinstance(came, FunctionCall):
                answering.create_task(answer(came))
            else:
                await asyncio.sleep(0.001)
        equal("the output", came.output, [n + 5 for n in range(20)])
