"""`Waiting`: said when the code cannot go on, with every unanswered call, oldest first."""

from __future__ import annotations

from hatchway.core.calls import FunctionCall, Waiting
from hatchway.core.sandbox import CodeSandbox
from hatchway.testing.conformance.checks import check
from hatchway.testing.conformance.drive import (
    LOOKUP,
    finish,
    next_call,
    next_calls,
    next_result,
    next_waiting,
    started,
)
from hatchway.testing.conformance.expect import equal, fail, shown

GATHER_3 = "import asyncio\nawait asyncio.gather(lookup(0), lookup(1), lookup(2))"
GATHER_30 = "import asyncio\nawait asyncio.gather(*[lookup(i) for i in range(30)])"


@check("after a sync call was handed out, next() says Waiting for it")
async def check_sync_call(sandbox: CodeSandbox) -> None:
    async with started(sandbox, "ping(7)", ["ping"]) as execution:
        call = await next_call(execution)
        equal("pending", (await next_waiting(execution)).pending, (call,))


@check("after an awaited call was handed out, next() says Waiting for it")
async def check_async_call(sandbox: CodeSandbox) -> None:
    async with started(sandbox, "await lookup(7)", [LOOKUP]) as execution:
        call = await next_call(execution)
        equal("pending", (await next_waiting(execution)).pending, (call,))


@check("asked again while nothing changed, next() says Waiting again", needs=("import asyncio",))
async def check_again(sandbox: CodeSandbox) -> None:
    async with started(sandbox, GATHER_3, [LOOKUP]) as execution:
        await next_calls(execution, 3)
        first = await next_waiting(execution)
        for _ in range(5):
            equal("Waiting given again", await next_waiting(execution), first)


@check("pending holds every unanswered call, oldest first", needs=("import asyncio",))
async def check_oldest_first(sandbox: CodeSandbox) -> None:
    async with started(sandbox, GATHER_30, [LOOKUP]) as execution:
        calls = await next_calls(execution, 30)
        equal("pending", (await next_waiting(execution)).pending, tuple(calls))
        equal("the order of the calls", [call.args[0] for call in calls], list(range(30)))


@check("an answered call is no longer pending, the others still are", needs=("import asyncio",))
async def check_shrinks(sandbox: CodeSandbox) -> None:
    async with started(sandbox, GATHER_3, [LOOKUP]) as execution:
        zero, one, two = await next_calls(execution, 3)
        await next_waiting(execution)
        await execution.provide_result("b", call_id=one.call_id)
        equal("pending after one answer", (await next_waiting(execution)).pending, (zero, two))
        await execution.provide_result("a", call_id=zero.call_id)
        equal("pending after two answers", (await next_waiting(execution)).pending, (two,))
        await execution.provide_result("c")
        equal("the output", (await next_result(execution)).output, ["a", "b", "c"])


@check("calls may be answered before Waiting was seen, and before all were handed out", needs=("import asyncio",))
async def check_answered_early(sandbox: CodeSandbox) -> None:
    async with started(sandbox, GATHER_3, [LOOKUP]) as execution:
        zero = await next_call(execution)
        await execution.provide_result("a", call_id=zero.call_id)
        one, two = await next_calls(execution, 2)
        await execution.provide_result("c", call_id=two.call_id)
        equal("pending", (await next_waiting(execution)).pending, (one,))
        await execution.provide_result("b")
        equal("the output", (await next_result(execution)).output, ["a", "b", "c"])


@check("a loop that answers each call before asking again never sees Waiting", needs=("import asyncio",))
async def check_never_seen(sandbox: CodeSandbox) -> None:
    code = f"{GATHER_30}\nawait lookup(30)\nawait asyncio.gather(*[lookup(i) for i in range(30)])"
    async with started(sandbox, code, [LOOKUP]) as execution:
        calls = 0
        while isinstance(call := await execution.next(), FunctionCall):
            calls += 1
            await execution.provide_result(call.args[0], call_id=call.call_id)
        if isinstance(call, Waiting):
            fail(f"Waiting for {shown(call.pending)} although every call was answered")
        equal("calls and output", [calls, call.output], [61, list(range(30))])


@check(
    "a sync call among parallel async ones waits with them, and is answered by its own id", needs=("import asyncio",)
)
async def check_sync_among_async(sandbox: CodeSandbox) -> None:
    code = """
        import asyncio
        async def by_sync():
            return ping("sync")
        await asyncio.gather(lookup("first"), by_sync())
    """
    async with started(sandbox, code, [LOOKUP, "ping"]) as execution:
        first, sync = await next_calls(execution, 2)
        equal("who calls", [first.args[0], sync.args[0]], ["first", "sync"])
        equal("pending", (await next_waiting(execution)).pending, (first, sync))
        await execution.provide_result(1, call_id=first.call_id)
        equal("pending after one answer", (await next_waiting(execution)).pending, (sync,))
        await execution.provide_result(2)
        equal("the output", (await next_result(execution)).output, [1, 2])


@check("a branch that goes on makes its next call while the others still wait", needs=("import asyncio",))
async def check_new_call_while_waiting(sandbox: CodeSandbox) -> None:
    code = """
        import asyncio
        async def twice(n):
            first = await lookup(n)
            return await lookup(first)
        await asyncio.gather(twice(1), twice(2))
    """
    async with started(sandbox, code, [LOOKUP]) as execution:
        one, two = await next_calls(execution, 2)
        await next_waiting(execution)
        await execution.provide_result(20, call_id=two.call_id)
        second = await next_call(execution)
        equal("the argument of the new call", second.args, (20,))
        equal("pending", (await next_waiting(execution)).pending, (one, second))
        await execution.provide_result(10, call_id=one.call_id)
        third = await next_call(execution)
        await execution.provide_result("b", call_id=second.call_id)
        await execution.provide_result("a", call_id=third.call_id)
        equal("the output", (await finish(execution)).output, ["a", "b"])
