"""Failures of the code itself: the right class of error, the code's own class and line, and nothing lost."""

from __future__ import annotations

from hatchway.core.errors import CodeExecutionError, CodeRuntimeError, CodeSyntaxError
from hatchway.core.output import MOST_ERROR_CHARACTERS
from hatchway.core.sandbox import CodeSandbox
from hatchway.testing.conformance.checks import FULL_LIBRARY, check
from hatchway.testing.conformance.drive import failure, next_call, ping, run, started, still_works
from hatchway.testing.conformance.expect import contains, equal, fail, raises, shown
from hatchway.testing.tools import fail as broken


@check("a syntax error is CodeSyntaxError, raised by next(), with its line; nothing ran")
async def check_syntax(sandbox: CodeSandbox) -> None:
    async with started(sandbox, "print('ran')\nping()\nx = = 1\n", ["ping"]) as execution:
        try:
            fail(f"expected CodeSyntaxError, got {shown(await execution.next())}")
        except CodeSyntaxError as e:
            contains("the error", str(e), "line 3")
            equal("stdout", e.stdout, "")
    await still_works(sandbox)


@check("unclosed brackets, bad indentation, stray keywords and unclosed strings are syntax errors")
async def check_kinds_of_syntax(sandbox: CodeSandbox) -> None:
    for code in ("print((1)", "if True:\nx = 1", "return 1 +", "'open", "class", "1 = x", "break"):
        await failure(sandbox, CodeSyntaxError, code)


@check("code nested too deeply to parse is an error of the code, not of the sandbox")
async def check_deep_source(sandbox: CodeSandbox) -> None:
    for code in ("(" * 20_000 + ")" * 20_000, "-" * 100_000 + "1", "[" * 5000):
        await failure(sandbox, CodeExecutionError, code)
    await still_works(sandbox)


@check("an exception is CodeRuntimeError with its class, message and the line of the code")
async def check_runtime(sandbox: CodeSandbox) -> None:
    error = await failure(sandbox, CodeRuntimeError, "a = 1\nb = 0\n\na / b\n")
    contains("the error", str(error), "ZeroDivisionError", "division", "line 4")


@check("the traceback names each function on the way, with lines of the code")
async def check_traceback(sandbox: CodeSandbox) -> None:
    code = "def inner(d):\n    return d['missing']\n\ndef outer():\n    return inner({})\n\nouter()"
    text = str(await failure(sandbox, CodeRuntimeError, code))
    contains("the error", text, "KeyError", "missing", "line 2", "line 5", "line 7", "inner", "outer")


@check("line numbers are right after a call, after an await and in async functions")
async def check_lines_after_calls(sandbox: CodeSandbox) -> None:
    async def fetch() -> int:
        return 0

    code = "ping()\nasync def work():\n    n = await fetch()\n    return 1 / n\n\nawait fetch()\nawait work()"
    error = await failure(sandbox, CodeRuntimeError, code, {"ping": ping, "fetch": fetch})
    contains("the error", str(error), "ZeroDivisionError", "line 4", "line 7")


@check("the traceback is of the code alone: no frames of the sandbox's own machinery")
async def check_no_own_frames(sandbox: CodeSandbox) -> None:
    tools = {"ping": ping, "broken": broken}
    for code in ("def f():\n    raise ValueError('x')\nf()", "x = ping()\n1 / 0", "broken()"):
        text = str(await failure(sandbox, CodeRuntimeError, code, tools))
        for own in ("hatchway", "site-packages", "exec(", "runpy"):
            if own in text:
                fail(f"{own!r} is in the traceback: {shown(text)}")


@check("assertion, name, attribute, type and index errors say what they are")
async def check_classes(sandbox: CodeSandbox) -> None:
    codes = {
        "assert 1 == 2": "AssertionError",
        "undefined_name": "NameError",
        "(1).nothing": "AttributeError",
        "1 + 'a'": "TypeError",
        "[][0]": "IndexError",
        "int('x')": "ValueError",
        "import no_such_module_here": "ModuleNotFoundError",
    }
    for code, name in codes.items():
        contains(f"the error of {code}", str(await failure(sandbox, CodeRuntimeError, code)), name)


@check("an exception class of the code's own is named", needs=("supports_class_inheritance",))
async def check_own_class(sandbox: CodeSandbox) -> None:
    code = "class OutOfStock(Exception):\n    pass\nraise OutOfStock('no apples')"
    contains("the error", str(await failure(sandbox, CodeRuntimeError, code)), "OutOfStock", "no apples", "line 3")


@check("an exception that cannot be printed is still reported by its class", needs=("supports_class_inheritance",))
async def check_unprintable(sandbox: CodeSandbox) -> None:
    code = "class Odd(Exception):\n    def __str__(self):\n        raise ValueError\nraise Odd()"
    contains("the error", str(await failure(sandbox, CodeRuntimeError, code)), "Odd")


@check("KeyboardInterrupt raised by the code is CodeRuntimeError")
async def check_keyboard_interrupt(sandbox: CodeSandbox) -> None:
    contains("the error", str(await failure(sandbox, CodeRuntimeError, "raise KeyboardInterrupt")), "KeyboardInterrupt")


@check("sys.exit is CodeRuntimeError naming SystemExit", needs=(FULL_LIBRARY,))
async def check_system_exit(sandbox: CodeSandbox) -> None:
    error = await failure(sandbox, CodeRuntimeError, "import sys\nprint('before')\nsys.exit(3)\nprint('after')")
    contains("the error", str(error), "SystemExit")
    equal("error.stdout", error.stdout, "before\n")


@check("SystemExit without a code ends the code, and is no failure")
async def check_plain_exit(sandbox: CodeSandbox) -> None:
    result = await run(sandbox, "print('before')\nif True:\n    raise SystemExit\nprint('after')\n5")
    equal("output and stdout", [result.output, result.stdout], [None, "before\n"])


@check("a coroutine as the output is told as what it is: nobody awaited it")
async def check_forgotten_await(sandbox: CodeSandbox) -> None:
    error = await failure(sandbox, CodeRuntimeError, "async def work():\n    return 1\nwork()")
    contains("the error", str(error), "output is a coroutine that was not awaited: write await before it")
    equal("stderr", error.stderr, "")


@check("the message of an exception is kept up to its limit, however long it is")
async def check_long_message(sandbox: CodeSandbox) -> None:
    error = await failure(sandbox, CodeRuntimeError, "raise ValueError('x' * 1_000_000)")
    contains("the error", str(error), "ValueError: xxx", "characters cut")
    equal("whether it is short", len(str(error)) < MOST_ERROR_CHARACTERS + 1000, True)


@check("endless recursion is a RecursionError, and the next execution works")
async def check_recursion(sandbox: CodeSandbox) -> None:
    error = await failure(sandbox, CodeRuntimeError, "def f(n):\n    return f(n + 1) + 1\nf(0)")
    contains("the error", str(error), "RecursionError")
    await still_works(sandbox)


@check("an error after calls comes out of next() once the calls are answered")
async def check_after_call(sandbox: CodeSandbox) -> None:
    async with started(sandbox, "n = ping()\nprint(n)\nraise ValueError('late')", ["ping"]) as execution:
        await next_call(execution)
        await execution.provide_result(7)
        try:
            fail(f"expected CodeRuntimeError, got {shown(await execution.next())}")
        except CodeRuntimeError as e:
            contains("the error", str(e), "ValueError", "late", "line 3")
            equal("error.stdout", e.stdout, "7\n")


@check("an error in the code is never one of the host's errors")
async def check_kinds_not_mixed(sandbox: CodeSandbox) -> None:
    for code in ("raise RuntimeError('sandbox crashed')", "raise OSError('broken pipe')", "raise EOFError"):
        async with started(sandbox, code) as execution:
            with raises(CodeRuntimeError, code):
                await execution.next()
