"""Parallel calls: gather, tasks and threads hand out their calls before any of them is answered."""

from __future__ import annotations

from hatchway.core.calls import Waiting
from hatchway.core.errors import CodeRuntimeError
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeSandbox
from hatchway.testing.conformance.checks import check
from hatchway.testing.conformance.drive import LOOKUP, finish, next_calls, next_result, next_waiting, pair, started
from hatchway.testing.conformance.expect import contains, equal, fail, shown


@check("gather of a hundred calls hands out all of them before any is answered", needs=("import asyncio",))
async def check_gather_hundred(sandbox: CodeSandbox) -> None:
    code = "import asyncio\nawait asyncio.gather(*[lookup(i) for i in range(100)])"
    async with started(sandbox, code, [LOOKUP]) as execution:
        calls = await next_calls(execution, 100)
        equal("pending", len((await next_waiting(execution)).pending), 100)
        for call in reversed(calls):
            await execution.provide_result(call.args[0] + 1000, call_id=call.call_id)
        equal("the output", (await next_result(execution)).output, [i + 1000 for i in range(100)])


@check("gather over own async functions runs their calls side by side", needs=("import asyncio",))
async def check_gather_functions(sandbox: CodeSandbox) -> None:
    code = """
        import asyncio
        async def chain(n):
            total = 0
            for step in range(3):
                total += await lookup(n)
            return total
        await asyncio.gather(*[chain(n) for n in range(10)])
    """
    async with started(sandbox, code, [LOOKUP]) as execution:
        for _ in range(3):
            for call in await next_calls(execution, 10):
                await execution.provide_result(call.args[0], call_id=call.call_id)
        equal("the output", (await next_result(execution)).output, [n * 3 for n in range(10)])


@check("calls with the same arguments stay different calls", needs=("import asyncio",))
async def check_same_arguments(sandbox: CodeSandbox) -> None:
    code = "import asyncio\nawait asyncio.gather(lookup('x'), lookup('x'), lookup('x'))"
    async with started(sandbox, code, [LOOKUP]) as execution:
        for number, call in enumerate(await next_calls(execution, 3)):
            await execution.provide_result(number, call_id=call.call_id)
        equal("the output", (await next_result(execution)).output, [0, 1, 2])


@check(
    "an error for one of several parallel calls is raised at the gather and can be caught", needs=("import asyncio",)
)
async def check_error_in_gather(sandbox: CodeSandbox) -> None:
    code = """
        import asyncio
        try:
            await asyncio.gather(lookup(0), lookup(1), lookup(2))
            told = "nothing raised"
        except ValueError as e:
            told = str(e)
        told
    """
    async with started(sandbox, code, [LOOKUP]) as execution:
        zero, one, two = await next_calls(execution, 3)
        await execution.provide_result(0, call_id=zero.call_id)
        await execution.provide_error(ValueError("second failed"), call_id=one.call_id)
        came = await execution.next()
        if isinstance(came, Waiting):  # a backend may let the gather end only when every call is answered
            await execution.provide_result(2, call_id=two.call_id)
            came = await execution.next()
        if not isinstance(came, ExecutionResult):
            fail(f"expected an ExecutionResult from next(), got {shown(came)}")
        contains("the caught error", came.output, "second failed")


@check("an error in parallel calls that is not caught ends the code as CodeRuntimeError", needs=("import asyncio",))
async def check_error_in_gather_uncaught(sandbox: CodeSandbox) -> None:
    code = "import asyncio\nawait asyncio.gather(lookup(0), lookup(1))"
    async with started(sandbox, code, [LOOKUP]) as execution:
        zero, one = await next_calls(execution, 2)
        await execution.provide_result(0, call_id=zero.call_id)
        await execution.provide_error(KeyError("no such row"), call_id=one.call_id)
        try:
            fail(f"expected CodeRuntimeError, got {shown(await execution.next())}")
        except CodeRuntimeError as e:
            contains("the error", str(e), "KeyError", "no such row")


@check("gather(return_exceptions=True) gives errors as values", needs=("supports_gather_exceptions",))
async def check_return_exceptions(sandbox: CodeSandbox) -> None:
    code = """
        import asyncio
        got = await asyncio.gather(lookup(0), lookup(1), lookup(2), return_exceptions=True)
        [g if isinstance(g, int) else [type(g).__name__, str(g)] for g in got]
    """
    async with started(sandbox, code, [LOOKUP]) as execution:
        zero, one, two = await next_calls(execution, 3)
        await execution.provide_error(ValueError("b"), call_id=one.call_id)
        await execution.provide_result(2, call_id=two.call_id)
        await execution.provide_result(0, call_id=zero.call_id)
        equal("the output", (await next_result(execution)).output, [0, ["ValueError", "b"], 2])


@check("tasks made with create_task call side by side", needs=("supports_tasks",))
async def check_create_task(sandbox: CodeSandbox) -> None:
    code = """
        import asyncio
        async def ask(n):
            return await lookup(n)
        tasks = [asyncio.create_task(ask(n)) for n in range(5)]
        [await task for task in tasks]
    """
    async with started(sandbox, code, [LOOKUP]) as execution:
        calls = await next_calls(execution, 5)
        equal("pending", len((await next_waiting(execution)).pending), 5)
        for call in reversed(calls):
            await execution.provide_result(call.args[0] * 2, call_id=call.call_id)
        equal("the output", (await next_result(execution)).output, [0, 2, 4, 6, 8])


@check("as_completed gives results in the order in which the host answered", needs=("supports_tasks",))
async def check_as_completed(sandbox: CodeSandbox) -> None:
    code = """
        import asyncio
        got = []
        for first in asyncio.as_completed([lookup(0), lookup(1), lookup(2)]):
            got.append(await first)
        got
    """
    async with started(sandbox, code, [LOOKUP]) as execution:
        calls = {call.args[0]: call.call_id for call in await next_calls(execution, 3)}
        for n in (2, 0, 1):
            await execution.provide_result(n, call_id=calls[n])
            await execution.next()
        equal("the output", (await next_result(execution)).output, [2, 0, 1])


@check("a call whose task the code cancelled does not hold up the end", needs=("supports_tasks",))
async def check_task_cancelled_inside(sandbox: CodeSandbox) -> None:
    code = """
        import asyncio
        slow = asyncio.create_task(lookup("slow"))
        quick = await lookup("quick")
        slow.cancel()
        quick
    """
    async with started(sandbox, code, [LOOKUP]) as execution:
        calls = {call.args[0]: call.call_id for call in await next_calls(execution, 2)}
        await execution.provide_result("in time", call_id=calls["quick"])
        equal("the output", (await next_result(execution)).output, "in time")


@check("sync calls from several threads are handed out side by side", needs=("supports_threads",))
async def check_threads(sandbox: CodeSandbox) -> None:
    code = """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(4) as pool:
            got = list(pool.map(ask, range(4)))
        got
    """
    async with started(sandbox, code, ["ask"]) as execution:
        for call in reversed(await next_calls(execution, 4)):
            await execution.provide_result(call.args[0] + 100, call_id=call.call_id)
        equal("the output", (await next_result(execution)).output, [100, 101, 102, 103])


@check("eight threads make fifty calls each and every answer reaches its own thread", needs=("supports_threads",))
async def check_many_thread_calls(sandbox: CodeSandbox) -> None:
    code = """
        import threading
        wrong = []
        def work(n):
            for i in range(50):
                if ask(n, i) != [n, i]:
                    wrong.append((n, i))
        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        wrong
    """
    async with started(sandbox, code, ["ask"]) as execution:
        result = await finish(execution, {"ask": pair})
    equal("answers that went astray", result.output, [])
    equal("usage.calls", result.usage.calls, 400)
