"""Errors of tools: raised inside the code at the call, catchable there, with their class or its name."""

from __future__ import annotations

import asyncio

from hatchway.core.errors import CodeExecutionError, CodeRuntimeError, ToolDenied, ToolError
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeSandbox
from hatchway.testing.conformance.checks import check
from hatchway.testing.conformance.drive import next_call, next_result, run, started, still_works
from hatchway.testing.conformance.expect import contains, equal, fail, raises, shown

CATCH = """
    try:
        ping()
        told = ["nothing raised", ""]
    except {kind} as e:
        told = [type(e).__name__, str(e)]
    told
"""

BUILTINS = (
    ValueError, KeyError, TypeError, IndexError, RuntimeError, ZeroDivisionError, AttributeError,
    NotImplementedError, OSError, TimeoutError, PermissionError, FileNotFoundError, LookupError, ArithmeticError,
)  # fmt: skip


class QuotaExceeded(Exception):
    """An exception class only the host knows."""


class Unprintable(Exception):
    """An exception that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


async def caught(sandbox: CodeSandbox, error: BaseException, kind: str = "Exception") -> tuple[str, str]:
    """The class name and text that `except KIND as e` sees for this error."""
    async with started(sandbox, CATCH.format(kind=kind), ["ping"]) as execution:
        await next_call(execution)
        await execution.provide_error(error)
        name, text = (await next_result(execution)).output
        return name, text


@check("ToolError is a RuntimeError inside and keeps its message")
async def check_tool_error(sandbox: CodeSandbox) -> None:
    name, text = await caught(sandbox, ToolError("the service is down"), "RuntimeError")
    contains("the message", text, "the service is down")
    if name != "ToolError" and not text.startswith("ToolError"):
        fail(f"neither the class ({name}) nor the start of the message ({text!r}) says ToolError")


@check("ToolDenied is a RuntimeError inside, and class or message says that it was denied")
async def check_tool_denied(sandbox: CodeSandbox) -> None:
    name, text = await caught(sandbox, ToolDenied("a person said no"), "RuntimeError")
    contains("the message", text, "a person said no")
    if name != "ToolDenied" and not text.startswith("ToolDenied"):
        fail(f"neither the class ({name}) nor the start of the message ({text!r}) says ToolDenied")


@check("builtin exceptions keep their class and message")
async def check_builtin_classes(sandbox: CodeSandbox) -> None:
    for kind in BUILTINS:
        name, text = await caught(sandbox, kind("what happened"), kind.__name__)
        equal(f"the class of a {kind.__name__}", name, kind.__name__)
        contains(f"the message of a {kind.__name__}", text, "what happened")


@check("an exception class of the host's own arrives as an error whose message begins with the class name")
async def check_own_class(sandbox: CodeSandbox) -> None:
    _, text = await caught(sandbox, QuotaExceeded("3 of 3 used"), "RuntimeError")
    if not text.startswith("QuotaExceeded"):
        fail(f"the message does not begin with QuotaExceeded: {text!r}")
    contains("the message", text, "3 of 3 used")


@check("builtin exceptions with several arguments arrive and can be caught")
async def check_odd_constructors(sandbox: CodeSandbox) -> None:
    odd = [
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad start byte"),
        FileNotFoundError(2, "No such file", "data.csv"),
        ExceptionGroup("two things", [ValueError("a"), TypeError("b")]),
        ValueError("several", 2, {"x": 1}),
    ]
    for error in odd:
        name, text = await caught(sandbox, error)
        contains(f"class and message of {error!r}", f"{name} {text}", type(error).__name__.removesuffix("Group"))


@check("errors with empty, long or hostile messages arrive and can be caught")
async def check_odd_messages(sandbox: CodeSandbox) -> None:
    messages = ["", "\n\n", "%s {0} {x!r}", "'\"\\", "nul\0 esc\x1b[2J", "漢字 🚀", "x" * 1_000_000, "a\ud800b"]
    for message in messages:
        _, text = await caught(sandbox, ValueError(message), "ValueError")
        kept = message.encode("utf-8", "ignore").decode()[:1000]
        if "\ud800" not in message and kept not in text:
            fail(f"the message {shown(message)} arrived as {shown(text)}")
    await caught(sandbox, Unprintable())


@check("KeyboardInterrupt, SystemExit and CancelledError of a tool stop at the call and harm neither side")
async def check_base_exceptions(sandbox: CodeSandbox) -> None:
    for error in (KeyboardInterrupt("stop"), SystemExit(3), asyncio.CancelledError(), GeneratorExit()):
        name, text = await caught(sandbox, error, "BaseException")
        contains(f"class and message of {error!r}", f"{name} {text}", type(error).__name__)
    await still_works(sandbox)


@check("an error that is not caught ends the code, with class, message and line of the call")
async def check_uncaught(sandbox: CodeSandbox) -> None:
    cases = ((ValueError("bad id"), "ValueError"), (QuotaExceeded("none left"), "QuotaExceeded"))
    for error, name in (*cases, (ToolDenied("not today"), "ToolDenied")):
        async with started(sandbox, "x = 1\ny = 2\nping(x)\nz = 3", ["ping"]) as execution:
            await next_call(execution)
            await execution.provide_error(error)
            with raises(CodeRuntimeError, f"an uncaught {name}", name, str(error), "line 3"):
                await execution.next()


@check("after catching an error the code goes on and can call again")
async def check_goes_on(sandbox: CodeSandbox) -> None:
    def half(n: int) -> int:
        if n % 2:
            raise ValueError(f"{n} is odd")
        return n // 2

    code = """
        got = []
        for n in range(6):
            try:
                got.append(half(n))
            except ValueError as e:
                got.append(str(e))
        got
    """
    result = await run(sandbox, code, {"half": half})
    equal("the output", result.output, [0, "1 is odd", 1, "3 is odd", 2, "5 is odd"])


@check("an error of an async tool is raised at its await")
async def check_async(sandbox: CodeSandbox) -> None:
    async def fetch(n: int) -> int:
        raise ValueError(f"no row {n}")

    code = """
        async def ask(n):
            try:
                return await fetch(n)
            except ValueError as e:
                return str(e)
        [await ask(1), await ask(2)]
    """
    equal("the output", (await run(sandbox, code, {"fetch": fetch})).output, ["no row 1", "no row 2"])


@check("an error raised in a nested function passes through its callers and their finally blocks")
async def check_passes_through(sandbox: CodeSandbox) -> None:
    code = """
        log = []
        def inner():
            try:
                ping()
            finally:
                log.append("inner")
        def outer():
            try:
                inner()
            except KeyError:
                log.append("outer")
                raise
        try:
            outer()
        except LookupError:
            log.append("top")
        log
    """
    async with started(sandbox, code, ["ping"]) as execution:
        await next_call(execution)
        await execution.provide_error(KeyError("k"))
        equal("the output", (await next_result(execution)).output, ["inner", "outer", "top"])


@check("the text of an error never shows the host's own frames")
async def check_no_host_frames(sandbox: CodeSandbox) -> None:
    def fetch() -> None:
        secret_in_frame = "s3cr3t"
        raise ValueError(secret_in_frame[:0] + "no")

    try:
        came: ExecutionResult = await run(sandbox, "fetch()", {"fetch": fetch})
        fail(f"expected CodeRuntimeError, got {shown(came)}")
    except CodeExecutionError as e:
        if "secret_in_frame" in str(e) or "tool_errors.py" in str(e):
            fail(f"the error shows the host's source: {shown(str(e))}")
