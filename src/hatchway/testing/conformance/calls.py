"""Calls: what the code calls arrives as it was called, and the answer goes back to that place."""

from __future__ import annotations

import inspect
from typing import Any

from hatchway.core.calls import FunctionCall, FunctionSignature
from hatchway.core.errors import CodeRuntimeError
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeSandbox
from hatchway.testing.conformance.checks import check
from hatchway.testing.conformance.drive import LOOKUP, Heard, finish, next_call, next_calls, run, started
from hatchway.testing.conformance.expect import contains, equal, fail, shown
from hatchway.testing.tools import add


async def async_double(n: int) -> int:
    """An async tool."""
    return n * 2


@check("a sync tool is called f(x) and gives its result")
async def check_sync(sandbox: CodeSandbox) -> None:
    equal("the output", (await run(sandbox, "add(40, 2)", {"add": add})).output, 42)


@check("an async tool is called await f(x) at the top level and gives its result")
async def check_async(sandbox: CodeSandbox) -> None:
    result = await run(sandbox, "x = await double(20)\nx + 2", {"double": async_double})
    equal("the output", result.output, 42)


@check("sync and async tools work side by side")
async def check_both_styles(sandbox: CodeSandbox) -> None:
    result = await run(sandbox, "[add(1, 2), await double(4), add(3, 4)]", {"add": add, "double": async_double})
    equal("the output", result.output, [3, 8, 7])


@check("positional and keyword arguments arrive as they were written")
async def check_arguments(sandbox: CodeSandbox) -> None:
    calls: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
        "f()": ((), {}),
        "f(1, 'two')": ((1, "two"), {}),
        "f(a=1, b=[2])": ((), {"a": 1, "b": [2]}),
        "f(1, *[2, 3], k=4, **{'m': 5})": ((1, 2, 3), {"k": 4, "m": 5}),
    }
    async with started(sandbox, "\n".join(calls), ["f"]) as execution:
        for code, (args, kwargs) in calls.items():
            call = await next_call(execution)
            equal(f"the name called by {code}", call.function_name, "f")
            equal(f"the arguments of {code}", [call.args, dict(call.kwargs)], [args, kwargs])
            await execution.provide_result(None)


@check("arguments of a tool with a signature bind to it as the code meant them")
async def check_signature(sandbox: CodeSandbox) -> None:
    def search(query: str, limit: int = 10, *, exact: bool = False) -> None: ...

    signature = inspect.signature(search)
    stub = "def search(query: str, limit: int = 10, *, exact: bool = False) -> None: ..."
    tool = FunctionSignature(name="search", parameters=signature, stub=stub)
    code = "search('a')\nsearch('b', 3)\nsearch(limit=4, query='c', exact=True)"
    bound: list[dict[str, Any]] = []
    async with started(sandbox, code, [tool]) as execution:
        for _ in range(3):
            call = await next_call(execution)
            arguments = signature.bind(*call.args, **call.kwargs)
            arguments.apply_defaults()
            bound.append(dict(arguments.arguments))
            await execution.provide_result(None)
    expected = [("a", 10, False), ("b", 3, False), ("c", 4, True)]
    equal("bound arguments", [tuple(b[k] for k in ("query", "limit", "exact")) for b in bound], expected)


@check("a name with a dot is called as a member of its namespace, sync and async")
async def check_namespace(sandbox: CodeSandbox) -> None:
    tools = {"files.size": len, "files.double": async_double, "web.double": async_double}
    result = await run(sandbox, "[files.size('abc'), await files.double(2), await web.double(3)]", tools)
    equal("the output", result.output, [3, 4, 6])


@check("every call of an execution has an id of its own")
async def check_unique_ids(sandbox: CodeSandbox) -> None:
    code = "import asyncio\nfor i in range(20):\n    await lookup(1)\nawait asyncio.gather(lookup(1), lookup(1))"
    ids: list[str] = []
    async with started(sandbox, code, [LOOKUP]) as execution:
        for _ in range(20):
            ids.append((await next_call(execution)).call_id)
            await execution.provide_result(None)
        ids += [call.call_id for call in await next_calls(execution, 2)]
    if len(set(ids)) != 22 or not all(isinstance(i, str) and i for i in ids):
        fail(f"22 calls have the ids {shown(ids)}")


@check("a thousand calls one after another, each answered with its own value")
async def check_thousand(sandbox: CodeSandbox) -> None:
    code = "total = 0\nfor i in range(1000):\n    total += square(i)\ntotal"
    seen: list[int] = []

    def square(n: int) -> int:
        seen.append(n)
        return n * n

    result = await run(sandbox, code, {"square": square})
    equal("the output", result.output, sum(i * i for i in range(1000)))
    equal("the calls", seen, list(range(1000)))


@check("tools can be called from functions, lambdas, comprehensions, conditions and f-strings")
async def check_call_sites(sandbox: CodeSandbox) -> None:
    code = """
        def outer(n):
            def inner(m):
                return add(m, 1)
            return inner(n) + 1
        by_lambda = lambda n: add(n, 1)
        listed = [add(n, 1) for n in range(3)]
        word = "more" if add(1, 1) > 1 else "less"
        [outer(1), by_lambda(1), listed, word, f"{add(1, 2)}", add(add(1, 2), add(3, 4))]
    """
    result = await run(sandbox, code, {"add": add})
    equal("the output", result.output, [3, 2, [1, 2, 3], "more", "3", 10])


@check("async tools can be awaited deep inside async functions")
async def check_nested_async(sandbox: CodeSandbox) -> None:
    code = """
        async def inner(n):
            first = await double(n)
            return first + await double(n)
        async def outer(n):
            return [await inner(i) for i in range(n)]
        await outer(3)
    """
    equal("the output", (await run(sandbox, code, {"double": async_double})).output, [0, 4, 8])


@check("a call in a finally block runs, also while an error passes")
async def check_finally(sandbox: CodeSandbox) -> None:
    code = """
        log = []
        try:
            try:
                log.append(note("try"))
                1 / 0
            finally:
                log.append(note("finally"))
        except ZeroDivisionError:
            log.append(note("except"))
        log
    """
    equal("the output", (await run(sandbox, code, {"note": str.upper})).output, ["TRY", "FINALLY", "EXCEPT"])


@check("the code stands still at a sync call until it is answered")
async def check_stands_still(sandbox: CodeSandbox) -> None:
    heard = Heard()
    code = "print('before')\nping()\nprint('after')"
    async with started(sandbox, code, ["ping"], on_output=heard) as execution:
        await next_call(execution)
        await execution.next()
        equal("printed before the answer", heard.of("stdout"), "before\n")
        await execution.provide_result(None)
        equal("stdout in the end", (await finish(execution)).stdout, "before\nafter\n")


@check("arguments are copies: what the host does to them stays on the host")
async def check_arguments_copied(sandbox: CodeSandbox) -> None:
    rows_seen: list[list[Any]] = []

    def take(rows: list[Any]) -> None:
        rows_seen.append(list(rows))
        rows.append("host")

    result = await run(sandbox, "rows = [1]\ntake(rows)\nrows.append(2)\ntake(rows)\nrows", {"take": take})
    equal("the code's list", result.output, [1, 2])
    equal("what the host saw", rows_seen, [[1], [1, 2]])


@check("results are copies: what the code does to them stays in the sandbox")
async def check_results_copied(sandbox: CodeSandbox) -> None:
    shared: dict[str, list[int]] = {"rows": [1]}
    result = await run(sandbox, "a = fetch()\na['rows'].append(2)\n[a, fetch()]", {"fetch": lambda: shared})
    equal("the output", result.output, [{"rows": [1, 2]}, {"rows": [1]}])
    equal("the host's object", shared, {"rows": [1]})


@check("a result may be changed by the host after it was given, without effect inside")
async def check_result_taken_at_once(sandbox: CodeSandbox) -> None:
    async with started(sandbox, "rows = fetch()\nfetch()\nrows", ["fetch"]) as execution:
        rows = [1]
        await next_call(execution)
        await execution.provide_result(rows)
        rows.append(2)
        await next_call(execution)
        await execution.provide_result(None)
        equal("the output", (await finish(execution)).output, [1])


@check("a name that was not offered is a NameError, or a call for the host to refuse")
async def check_undeclared(sandbox: CodeSandbox) -> None:
    async with started(sandbox, "ping()\nfly(1)", ["ping"]) as execution:
        await next_call(execution)
        await execution.provide_result(None)
        try:
            match await execution.next():
                case FunctionCall(function_name="fly"):
                    await execution.provide_error(NameError("name 'fly' is not defined"))
                    came = await execution.next()
                    fail(f"expected CodeRuntimeError, got {shown(came)}")
                case FunctionCall() | ExecutionResult() | _ as came:
                    fail(f"expected a NameError or a call of fly, got {shown(came)}")
        except CodeRuntimeError as e:
            contains("the error", str(e), "NameError", "fly")
