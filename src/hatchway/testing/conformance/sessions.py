"""Sessions: state is kept from action to action, one action at a time, apart from everyone else."""

from __future__ import annotations

import asyncio
from functools import partial

from hatchway.core.errors import (
    CodeExecutionError,
    CodeRuntimeError,
    CodeSyntaxError,
    CodeTimeoutError,
    HatchwayError,
    SandboxCrashed,
)
from hatchway.core.limits import Limits
from hatchway.core.sandbox import CodeSandbox
from hatchway.testing.conformance.checks import FULL_LIBRARY, check
from hatchway.testing.conformance.drive import failure, next_call, next_result, pair, ping, run, started, still_works
from hatchway.testing.conformance.expect import SLACK_SECONDS, contains, equal, fail, raises, shown
from hatchway.testing.tools import add

STATEFUL = ("stateful",)
SPIN = "while True:\n    pass"


@check("names, functions and changed values are kept from action to action", needs=STATEFUL)
async def check_state_kept(sandbox: CodeSandbox) -> None:
    async with sandbox.session() as session:
        await run(session, "xs = [1]\ndef grow(n):\n    xs.append(n)\n    return len(xs)")
        await run(session, "grow(2)")
        equal("the output", (await run(session, "[grow(3), xs]")).output, [3, [1, 2, 3]])


@check("imports are kept from action to action", needs=(*STATEFUL, "import math"))
async def check_imports_kept(sandbox: CodeSandbox) -> None:
    async with sandbox.session() as session:
        await run(session, "import math\nfrom math import floor")
        equal("the output", (await run(session, "[math.floor(2.5), floor(3.5)]")).output, [2, 3])


@check("each action has its own output, stdout and call count", needs=STATEFUL)
async def check_results_apart(sandbox: CodeSandbox) -> None:
    async with sandbox.session() as session:
        first = await run(session, "print('one')\nping()\n1", {"ping": ping})
        second = await run(session, "print('two')\nx = 2", {"ping": ping})
    equal("the first", [first.output, first.stdout, first.usage.calls], [1, "one\n", 1])
    equal("the second", [second.output, second.stdout, second.usage.calls], [None, "two\n", 0])


@check("tools and awaits work in every action; a kept async function can be called later", needs=STATEFUL)
async def check_calls(sandbox: CodeSandbox) -> None:
    async def double(n: int) -> int:
        return n * 2

    tools = {"double": double, "add": add}
    async with sandbox.session() as session:
        await run(
            session, "async def quadruple(n):\n    return await double(await double(n))\nx = await double(1)", tools
        )
        equal("the output", (await run(session, "[x, add(x, 1), await quadruple(3)]", tools)).output, [2, 3, 12])


@check("inputs of an action are bound in it", needs=STATEFUL)
async def check_inputs(sandbox: CodeSandbox) -> None:
    async with sandbox.session() as session:
        for n in (1, 2):
            equal("the output", (await run(session, "n * 10", inputs={"n": n})).output, n * 10)


@check("an error does not lose the state, not even that of the failed action", needs=STATEFUL)
async def check_error_keeps_state(sandbox: CodeSandbox) -> None:
    async with sandbox.session() as session:
        await run(session, "x = 1")
        await failure(session, CodeRuntimeError, "x = 2\n1 / 0")
        await failure(session, CodeSyntaxError, "x = = 3")
        equal("x after two errors", (await run(session, "x")).output, 2)


@check("line numbers are those of the action, not of the session", needs=STATEFUL)
async def check_line_numbers(sandbox: CodeSandbox) -> None:
    async with sandbox.session() as session:
        await run(session, "def divide(a, b):\n    return a / b\n\n\n\n\n")
        error = await failure(session, CodeRuntimeError, "x = 1\n\ndivide(x, 0)")
        contains("the error", str(error), "ZeroDivisionError", "line 2", "line 3")


@check("a second action while the first has not ended is a RuntimeError; the first goes on", needs=STATEFUL)
async def check_one_at_a_time(sandbox: CodeSandbox) -> None:
    async with sandbox.session() as session:
        async with started(session, "x = ping()\nx + 1", ["ping"]) as execution:
            await next_call(execution)
            with raises(RuntimeError, "a second action while the first waits"):
                await session.execute("1")
            await execution.provide_result(1)
            equal("the first action's output", (await next_result(execution)).output, 2)
        equal("the state afterwards", (await run(session, "x")).output, 1)


@check("sessions are apart from each other and from plain executions", needs=STATEFUL)
async def check_isolated(sandbox: CodeSandbox) -> None:
    async with sandbox.session() as one, sandbox.session() as two:
        await run(one, "secret = 1")
        await failure(two, CodeRuntimeError, "secret")
        await failure(sandbox, CodeRuntimeError, "secret")
        await run(two, "secret = 2")
        equal("each session's own", [(await run(s, "secret")).output for s in (one, two)], [1, 2])


@check("ten sessions at once keep their own state", needs=STATEFUL)
async def check_ten_at_once(sandbox: CodeSandbox) -> None:
    async def one(me: int) -> object:
        async with sandbox.session() as session:
            await run(session, f"log = [{me}]")
            for i in range(5):
                await run(session, f"log.append(ask({i}))", {"ask": partial(pair, me)})
            return (await run(session, "log")).output

    outputs = await asyncio.gather(*[one(me) for me in range(10)])
    equal("the logs", outputs, [[me, *([me, i] for i in range(5))] for me in range(10)])


@check("the session's limits hold for each action; an action's own limits come first", needs=STATEFUL)
async def check_limits(sandbox: CodeSandbox) -> None:
    async with sandbox.session(limits=Limits(calls=2)) as session:
        two, three = "ping()\nping()\n'ok'", "ping()\nping()\nping()\n'ok'"
        tools = {"ping": ping}
        for _ in range(2):
            equal("two calls in one action", (await run(session, two, tools)).output, "ok")
        equal("its own limit", (await run(session, three, tools, limits=Limits(calls=3))).output, "ok")
        contains("the error", str(await failure(session, CodeExecutionError, three, tools)), "calls")


@check("the clock starts anew with each action", needs=(*STATEFUL, "import time"))
async def check_clock_per_action(sandbox: CodeSandbox) -> None:
    async with sandbox.session(limits=Limits(wall_seconds=0.8)) as session:
        for _ in range(4):
            await run(session, "import time\ntime.sleep(0.3)")


@check("after a timeout the session says it is gone: SandboxCrashed", needs=STATEFUL)
async def check_gone_after_timeout(sandbox: CodeSandbox) -> None:
    async with sandbox.session() as session:
        await failure(session, CodeTimeoutError, SPIN, limits=Limits(wall_seconds=0.3))
        with raises(SandboxCrashed, "an action after a timeout"):
            await run(session, "1")
    await still_works(sandbox)


@check("after its interpreter died the session says it is gone: SandboxCrashed", needs=(*STATEFUL, FULL_LIBRARY))
async def check_gone_after_death(sandbox: CodeSandbox) -> None:
    async with sandbox.session() as session:
        await failure(session, CodeRuntimeError, "import os\nos._exit(1)")
        with raises(SandboxCrashed, "an action after the interpreter died"):
            await run(session, "1")


@check("after a cancelled action the session goes on or says it is gone: SandboxCrashed", needs=STATEFUL)
async def check_after_cancel(sandbox: CodeSandbox) -> None:
    async with sandbox.session() as session:
        await run(session, "x = 1")
        async with started(session, SPIN) as execution:
            await asyncio.sleep(0.1)
            await execution.cancel()
        try:
            equal("the state afterwards", (await run(session, "x")).output, 1)
        except SandboxCrashed:
            pass


@check("leaving the session kills what runs in it; afterwards it takes no action", needs=STATEFUL)
async def check_left(sandbox: CodeSandbox) -> None:
    async with sandbox.session() as session:
        running = await session.execute(SPIN)
    try:
        async with asyncio.timeout(SLACK_SECONDS):
            fail(f"next() after the session was left gave {shown(await running.next())}")
    except HatchwayError:
        pass
    with raises((SandboxCrashed, RuntimeError), "an action after the session was left"):
        await run(session, "1")
