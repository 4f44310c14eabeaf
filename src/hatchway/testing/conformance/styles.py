"""The two styles of calling: `f(x)` for sync tools, `await f(x)` for async ones; the wrong one is a clear error."""

from __future__ import annotations

from typing import Any

from hatchway.core.errors import CodeExecutionError
from hatchway.core.sandbox import CodeSandbox
from hatchway.testing.conformance.checks import check
from hatchway.testing.conformance.drive import failure, run
from hatchway.testing.conformance.expect import contains, equal
from hatchway.testing.tools import echo


async def fetch(key: Any = None) -> Any:
    """An async tool."""
    return key


async def _names_await(sandbox: CodeSandbox, code: str) -> None:
    error = await failure(sandbox, CodeExecutionError, code, {"fetch": fetch})
    contains("the error", str(error), "await fetch(")


@check("using what an async tool gave without await is an error that says `await f(...)`")
async def check_async_used_without_await(sandbox: CodeSandbox) -> None:
    await _names_await(sandbox, "fetch(1) + 1")


@check("ending the code in an async call without await is an error that says `await f(...)`")
async def check_async_as_output_without_await(sandbox: CodeSandbox) -> None:
    await _names_await(sandbox, "fetch(1)")


@check("handing an async call that was not awaited to a tool is an error that says `await f(...)`")
async def check_async_as_argument_without_await(sandbox: CodeSandbox) -> None:
    await _names_await(sandbox, "await fetch([fetch(1)])")


@check("an async call that is never awaited is an error that says `await f(...)`, not a call silently lost")
async def check_async_never_awaited(sandbox: CodeSandbox) -> None:
    await _names_await(sandbox, "fetch(1)\n'done'")


@check("awaiting a sync tool is an error that says to call it without await")
async def check_sync_awaited(sandbox: CodeSandbox) -> None:
    error = await failure(sandbox, CodeExecutionError, "await read(1)", {"read": echo})
    contains("the error", str(error), "read(", "await")


@check("the error of the wrong style can be caught by the code, which then goes on")
async def check_wrong_style_caught(sandbox: CodeSandbox) -> None:
    code = """
        try:
            fetch(1) + 1
        except Exception as e:
            told = str(e)
        [told, await fetch(2)]
    """
    told, second = (await run(sandbox, code, {"fetch": fetch})).output
    contains("the caught error", told, "await fetch(")
    equal("the call in the right style", second, 2)
