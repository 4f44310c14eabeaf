"""What an execution gives at its end, and what it starts from."""

from __future__ import annotations

from hatchway.core.errors import CodeExecutionError, CodeRuntimeError, CodeSyntaxError, ValueNotPortable
from hatchway.core.sandbox import CodeSandbox
from hatchway.testing.conformance.checks import FULL_LIBRARY, check
from hatchway.testing.conformance.drive import failure, next_result, ping, run, started, still_works
from hatchway.testing.conformance.expect import contains, equal, fail, raises, shown


@check("the output is the value of the last expression")
async def check_last_expression(sandbox: CodeSandbox) -> None:
    result = await run(sandbox, "a = 20\nb = 22\na + b")
    equal("the output", result.output, 42)


@check("code that does not end in an expression gives None")
async def check_no_last_expression(sandbox: CodeSandbox) -> None:
    for code in ("1 + 1\nx = 5", "5\nfor i in [1, 2]:\n    i", "def f():\n    return 7", "7\npass"):
        equal(f"the output of {code!r}", (await run(sandbox, code)).output, None)


@check("empty code, blank code and a lone comment run and give None")
async def check_empty_code(sandbox: CodeSandbox) -> None:
    for code in ("", "\n  \n", "# nothing to do"):
        result = await run(sandbox, code)
        equal(f"output and stdout of {code!r}", [result.output, result.stdout], [None, ""])


@check("inputs are global names, seen by functions too")
async def check_inputs(sandbox: CodeSandbox) -> None:
    code = """
        def total():
            return sum(prices) * rate
        total()
    """
    result = await run(sandbox, code, inputs={"prices": [1, 2, 3], "rate": 2})
    equal("the output", result.output, 12)


@check("inputs are copies: the code cannot change the host's objects")
async def check_inputs_copied(sandbox: CodeSandbox) -> None:
    rows = [[1], {"a": [2]}]
    result = await run(sandbox, "rows[0].append(9)\nrows[1]['a'].append(9)\nrows", inputs={"rows": rows})
    equal("the code's own copy", result.output, [[1, 9], {"a": [2, 9]}])
    equal("the host's object", rows, [[1], {"a": [2]}])


@check("an input that cannot cross is refused by execute(), which names its path")
async def check_input_refused(sandbox: CodeSandbox) -> None:
    with raises(ValueNotPortable, "an input holding an object", "[1]", "object"):
        async with started(sandbox, "rows", inputs={"rows": [1, object()]}):
            pass
    await still_works(sandbox)


@check("each execution starts with a fresh interpreter")
async def check_fresh_state(sandbox: CodeSandbox) -> None:
    await run(sandbox, "leftover = 1\ndef helper():\n    return leftover")
    for name in ("leftover", "helper"):
        error = await failure(sandbox, CodeRuntimeError, name)
        contains("the error", str(error), "NameError", name)


@check("a changed module does not reach the next execution", needs=(FULL_LIBRARY,))
async def check_fresh_modules(sandbox: CodeSandbox) -> None:
    await run(sandbox, "import json\njson.dumps = len\njson.dumps('abc')")
    equal("the next execution's json.dumps", (await run(sandbox, "import json\njson.dumps('a')")).output, '"a"')


@check("source, names, values and output may be any Unicode text")
async def check_unicode(sandbox: CodeSandbox) -> None:
    result = await run(sandbox, "größe = '漢字 🚀 é'\nprint(größe)\ngröße + '\\n'")
    equal("output and stdout", [result.output, result.stdout], ["漢字 🚀 é\n", "漢字 🚀 é\n"])


@check("five megabytes of code run")
async def check_large_code(sandbox: CodeSandbox) -> None:
    comment = "# " + "x" * 98 + "\n"
    code = comment * 25_000 + f"text = '{'y' * 2_500_000}'\nlen(text)"
    equal("the output", (await run(sandbox, code)).output, 2_500_000)


@check("a NUL or a lone surrogate in the source is a syntax error, not a crash")
async def check_odd_characters(sandbox: CodeSandbox) -> None:
    for code in ("x = 1\0\nx", "x = '\ud800'\nx", "\udcff"):
        await failure(sandbox, CodeSyntaxError, code)
    await still_works(sandbox)


@check("a byte order mark, Windows line ends and form feeds are no part of the code")
async def check_odd_text(sandbox: CodeSandbox) -> None:
    equal("the output", (await run(sandbox, "\ufeffx = 1\r\nif x:\r\n\tx = 2\r\n\f\r\nx + 1\r\n")).output, 3)


@check("the result says which tier it ran in")
async def check_tier(sandbox: CodeSandbox) -> None:
    equal("result.tier", (await run(sandbox, "1")).tier, sandbox.tier)


@check("the result says what it took: time and number of calls")
async def check_usage(sandbox: CodeSandbox) -> None:
    result = await run(sandbox, "n = 0\nfor i in range(1000):\n    n += i\nping()\nping()\nn", {"ping": ping})
    usage = result.usage
    equal("usage.calls", usage.calls, 2)
    if not 0 < usage.wall_seconds < 20 or usage.cpu_seconds < 0 or usage.memory_bytes < 0:
        fail(f"usage is not filled: {shown(usage)}")


@check("after the end, next() gives the same result again")
async def check_result_repeats(sandbox: CodeSandbox) -> None:
    async with started(sandbox, "print('once')\n[1, 2]") as execution:
        first = await next_result(execution)
        for _ in range(3):
            equal("the result given again", await execution.next(), first)


@check("after an error, next() raises the same error again")
async def check_error_repeats(sandbox: CodeSandbox) -> None:
    async with started(sandbox, "print('once')\n1 / 0") as execution:
        told: list[tuple[str, str, str]] = []
        for _ in range(3):
            try:
                fail(f"expected CodeRuntimeError, got {shown(await execution.next())}")
            except CodeExecutionError as e:
                told.append((type(e).__name__, str(e), e.stdout))
        equal("class, text and stdout of the error given again", told, [told[0]] * 3)
        contains("the error", told[0][1], "ZeroDivisionError")
