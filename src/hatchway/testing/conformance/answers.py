"""Answers: to which call one goes, and what is refused."""

from __future__ import annotations

from hatchway.core.errors import ValueNotPortable
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
from hatchway.testing.conformance.expect import equal, raises

GATHER_2 = "import asyncio\nawait asyncio.gather(lookup(0), lookup(1))"


@check("call_id may be omitted when exactly one call is pending")
async def check_id_omitted(sandbox: CodeSandbox) -> None:
    async with started(
        sandbox, "a = ping()\ntry:\n    ping()\nexcept ValueError:\n    a += 1\na", ["ping"]
    ) as execution:
        await next_call(execution)
        await execution.provide_result(1)
        await next_call(execution)
        await execution.provide_error(ValueError("no"))
        equal("the output", (await next_result(execution)).output, 2)


@check("without a call_id an answer is a ValueError when several calls are pending", needs=("import asyncio",))
async def check_id_needed(sandbox: CodeSandbox) -> None:
    async with started(sandbox, GATHER_2, [LOOKUP]) as execution:
        zero, one = await next_calls(execution, 2)
        with raises(ValueError, "a result without call_id for two pending calls"):
            await execution.provide_result("lost")
        with raises(ValueError, "an error without call_id for two pending calls"):
            await execution.provide_error(RuntimeError("lost"))
        await execution.provide_result("a", call_id=zero.call_id)
        await execution.provide_result("b", call_id=one.call_id)
        equal("the output", (await finish(execution)).output, ["a", "b"])


@check("an answer to an id that is not pending is a ValueError and harms nothing")
async def check_unknown_id(sandbox: CodeSandbox) -> None:
    async with started(sandbox, "ping()", ["ping"]) as execution:
        call = await next_call(execution)
        for wrong in ("no-such-call", "", call.call_id + "0"):
            with raises(ValueError, f"a result for the call {wrong!r}"):
                await execution.provide_result("lost", call_id=wrong)
            with raises(ValueError, f"an error for the call {wrong!r}"):
                await execution.provide_error(RuntimeError("lost"), call_id=wrong)
        await execution.provide_result("kept")
        equal("the output", (await next_result(execution)).output, "kept")


@check("answering a call twice is a ValueError; the first answer counts", needs=("import asyncio",))
async def check_twice(sandbox: CodeSandbox) -> None:
    async with started(sandbox, GATHER_2, [LOOKUP]) as execution:
        zero, one = await next_calls(execution, 2)
        await execution.provide_result("first", call_id=zero.call_id)
        with raises(ValueError, "a second result for one call"):
            await execution.provide_result("second", call_id=zero.call_id)
        with raises(ValueError, "an error for an answered call"):
            await execution.provide_error(RuntimeError("second"), call_id=zero.call_id)
        await execution.provide_result("b", call_id=one.call_id)
        equal("the output", (await finish(execution)).output, ["first", "b"])


@check("an answer before any call was made, or after the end, is a ValueError")
async def check_nothing_pending(sandbox: CodeSandbox) -> None:
    async with started(sandbox, "ping()", ["ping"]) as execution:
        call = await next_call(execution)
        await execution.provide_result(1)
        await next_result(execution)
        with raises(ValueError, "a result after the end, without an id"):
            await execution.provide_result(2)
        with raises(ValueError, "a result after the end, with the old id"):
            await execution.provide_result(2, call_id=call.call_id)
        with raises(ValueError, "an error after the end"):
            await execution.provide_error(RuntimeError("late"), call_id=call.call_id)


@check("a result that cannot cross is refused with its path; the call stays pending and can be answered again")
async def check_refused_result(sandbox: CodeSandbox) -> None:
    async with started(sandbox, "fetch()", ["fetch"]) as execution:
        call = await next_call(execution)
        for bad, path in (({"rows": [1, object()]}, "['rows'][1]"), ([len], "[0]")):
            with raises(ValueNotPortable, "a result holding what cannot cross", path):
                await execution.provide_result(bad, call_id=call.call_id)
        equal("pending", (await next_waiting(execution)).pending, (call,))
        await execution.provide_result({"rows": [1, 2]})
        equal("the output", (await next_result(execution)).output, {"rows": [1, 2]})


@check("a result refused among several pending calls leaves the others alone", needs=("import asyncio",))
async def check_refused_among_several(sandbox: CodeSandbox) -> None:
    async with started(sandbox, GATHER_2, [LOOKUP]) as execution:
        zero, one = await next_calls(execution, 2)
        with raises(ValueNotPortable, "a result that is a function"):
            await execution.provide_result(print, call_id=one.call_id)
        await execution.provide_result("a", call_id=zero.call_id)
        equal("pending", (await next_waiting(execution)).pending, (one,))
        await execution.provide_result("b", call_id=one.call_id)
        equal("the output", (await finish(execution)).output, ["a", "b"])


@check("answers given out of order reach their own calls", needs=("import asyncio",))
async def check_out_of_order(sandbox: CodeSandbox) -> None:
    code = "import asyncio\nawait asyncio.gather(*[lookup(i) for i in range(10)])"
    async with started(sandbox, code, [LOOKUP]) as execution:
        calls = await next_calls(execution, 10)
        for call in [*calls[5:], *reversed(calls[:5])]:
            await execution.provide_result(call.args[0] * 10, call_id=call.call_id)
        equal("the output", (await finish(execution)).output, [i * 10 for i in range(10)])
