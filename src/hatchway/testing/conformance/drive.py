"""Driving an execution from a check: start it, answer its calls, kill it whatever happens."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from textwrap import dedent
from typing import Any, TypedDict, TypeVar, Unpack

from hatchway.core.calls import FunctionCall, FunctionSignature, Waiting
from hatchway.core.errors import CodeExecutionError
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeExecution, CodeSandbox, CodeSession, Functions, OnOutput
from hatchway.testing.conformance.expect import fail, shown

Tools = Mapping[str, Callable[..., Any]]
"""Host functions by the name the code calls; an `async def` is offered as an async tool."""
E = TypeVar("E", bound=CodeExecutionError)

LOOKUP = FunctionSignature(name="lookup", is_async=True)
"""An async tool of any arguments, which most checks of parallel calls use."""
GRACE_SECONDS = 5.0


class Heard:
    """An `on_output` that remembers what it heard."""

    def __init__(self) -> None:
        self.pieces: list[tuple[str, str]] = []

    def __call__(self, stream: str, text: str) -> None:
        self.pieces.append((stream, text))

    def of(self, stream: str) -> str:
        """Everything heard of one stream."""
        return "".join(text for name, text in self.pieces if name == stream)


class Options(TypedDict, total=False):
    """The keyword arguments of `execute`."""

    inputs: Mapping[str, Any] | None
    limits: Limits | None
    on_output: OnOutput | None


@asynccontextmanager
async def started(
    place: CodeSandbox | CodeSession, code: str, functions: Functions = (), **options: Unpack[Options]
) -> AsyncGenerator[CodeExecution]:
    """An execution that is dead at the end of the block, also when the check fails in it."""
    execution = await place.execute(dedent(code), functions, **options)
    try:
        yield execution
    finally:
        await killed(execution)


async def killed(execution: CodeExecution) -> None:
    """Cancel within bounds; what goes wrong here has a check of its own and must not hide another finding."""
    try:
        async with asyncio.timeout(GRACE_SECONDS):
            await execution.cancel()
    except Exception:
        return


async def run(
    place: CodeSandbox | CodeSession, code: str, tools: Tools | None = None, **options: Unpack[Options]
) -> ExecutionResult:
    """Run the code to its end; each call is answered at once by the tool of its name."""
    tools = tools or {}
    async with started(place, code, offered(tools), **options) as execution:
        return await finish(execution, tools)


async def failure(
    place: CodeSandbox | CodeSession, kind: type[E], code: str, tools: Tools | None = None, **options: Unpack[Options]
) -> E:
    """The error this code must end in."""
    try:
        result = await run(place, code, tools, **options)
    except kind as e:
        return e
    except CodeExecutionError as e:
        fail(f"expected {kind.__name__}, got {type(e).__name__}: {shown(str(e))}")
    fail(f"expected {kind.__name__}, but the code ended with output {shown(result.output)}")


def ping(*args: Any) -> None:
    """A tool that takes anything and gives nothing."""


def pair(a: Any, b: Any) -> list[Any]:
    """A tool that gives back what it got, so that an answer tells whose it is."""
    return [a, b]


def offered(tools: Tools) -> Functions:
    """The signatures of host functions, by name and style only."""
    return [FunctionSignature(name=name, is_async=inspect.iscoroutinefunction(f)) for name, f in tools.items()]


async def finish(execution: CodeExecution, tools: Tools | None = None) -> ExecutionResult:
    """Answer every call until the code ends; such a loop never sees `Waiting`."""
    while True:
        match await execution.next():
            case ExecutionResult() as result:
                return result
            case FunctionCall() as call:
                await answer(execution, call, tools or {})
            case Waiting() as waiting:
                fail(f"Waiting for {names(waiting.pending)} although every call was answered")
            case other:  # pyright: ignore[reportUnnecessaryComparison]
                fail(f"next() gave {shown(other)}")


async def answer(execution: CodeExecution, call: FunctionCall, tools: Tools) -> None:
    """Run the tool and give its result, or its error, back."""
    try:
        value = tools[call.function_name](*call.args, **call.kwargs)
        value = await value if inspect.isawaitable(value) else value
    except Exception as e:
        await execution.provide_error(e, call_id=call.call_id)
    else:
        await execution.provide_result(value, call_id=call.call_id)


async def next_call(execution: CodeExecution) -> FunctionCall:
    """What comes next, which must be a call."""
    came = await execution.next()
    if not isinstance(came, FunctionCall):
        fail(f"expected a FunctionCall from next(), got {shown(came)}")
    return came


async def next_calls(execution: CodeExecution, count: int) -> list[FunctionCall]:
    """The next calls, taken without answering any."""
    return [await next_call(execution) for _ in range(count)]


async def next_waiting(execution: CodeExecution) -> Waiting:
    """What comes next, which must be `Waiting`."""
    came = await execution.next()
    if not isinstance(came, Waiting):
        fail(f"expected Waiting from next(), got {shown(came)}")
    return came


async def next_result(execution: CodeExecution) -> ExecutionResult:
    """What comes next, which must be the result."""
    came = await execution.next()
    if not isinstance(came, ExecutionResult):
        fail(f"expected an ExecutionResult from next(), got {shown(came)}")
    return came


def names(calls: Sequence[FunctionCall]) -> str:
    """The calls as a reader of a message wants them."""
    return ", ".join(f"{call.function_name} ({call.call_id})" for call in calls) or "no call"


async def still_works(sandbox: CodeSandbox) -> None:
    """The next execution works: what happened before stayed in its own execution."""
    result = await run(sandbox, "20 + 22")
    if result.output != 42:
        fail(f"the next execution gave {shown(result.output)} for 20 + 22")
