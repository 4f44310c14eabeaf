"""The suite catches: a sandbox broken in one way fails the check that names it; the same sandbox unbroken passes."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from hatchway.core.calls import FunctionCall, Waiting
from hatchway.core.errors import CodeExecutionError, CodeRuntimeError, CodeSyntaxError
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult, Usage
from hatchway.core.sandbox import Availability, CodeExecution, CodeSandbox, CodeSession, Functions
from hatchway.sandboxes.process import ProcessSandbox
from hatchway.testing import CHECKS, run_check

pytestmark = pytest.mark.anyio
Event = FunctionCall | Waiting | ExecutionResult
BY_ID = {check.id: check for check in CHECKS}


class Thin(CodeExecution):
    """An execution that only passes on; mutants change one method."""

    def __init__(self, inner: CodeExecution) -> None:
        self.inner = inner

    async def next(self) -> Event:
        return await self.inner.next()

    async def provide_result(self, value: Any, *, call_id: str | None = None) -> None:
        await self.inner.provide_result(value, call_id=call_id)

    async def provide_error(self, error: BaseException, *, call_id: str | None = None) -> None:
        await self.inner.provide_error(error, call_id=call_id)

    def dump(self) -> bytes | None:
        return self.inner.dump()

    async def cancel(self) -> None:
        await self.inner.cancel()


class Unbroken(CodeSandbox):
    """A real sandbox behind a wrapper that changes nothing."""

    name: ClassVar[str] = "unbroken"
    execution: Callable[[CodeExecution], CodeExecution] = Thin

    def __init__(self) -> None:
        self.inner = self.make()
        self.constraints, self.tier = self.inner.constraints, self.inner.tier

    def make(self) -> CodeSandbox:
        return ProcessSandbox()

    async def execute(self, code: str, functions: Functions = (), **options: Any) -> CodeExecution:
        return type(self).execution(await self.inner.execute(code, functions, **options))

    def session(self, *, limits: Limits | None = None) -> AbstractAsyncContextManager[CodeSession]:
        return self.inner.session(limits=limits)

    async def aclose(self) -> None:
        await self.inner.aclose()

    @classmethod
    def probe(cls) -> Availability:
        return Availability(state="usable", tier="process")


def broken(execution: type[Thin]) -> type[Unbroken]:
    """The sandbox with this execution."""
    return type(execution.__name__, (Unbroken,), {"execution": execution})


class HandsCallsOutTwice(Thin):
    last: FunctionCall | None = None

    async def next(self) -> Event:
        if self.last is not None:
            again, self.last = self.last, None
            return again
        came = await super().next()
        self.last = came if isinstance(came, FunctionCall) else None
        return came


class NewestFirst(Thin):
    async def next(self) -> Event:
        came = await super().next()
        return Waiting(came.pending[::-1]) if isinstance(came, Waiting) else came


class ForgetsPending(Thin):
    async def next(self) -> Event:
        came = await super().next()
        return Waiting(came.pending[:-1]) if isinstance(came, Waiting) else came


class OneIdForAll(Thin):
    async def next(self) -> Event:
        came = await super().next()
        return replace(came, call_id="1") if isinstance(came, FunctionCall) else came

    async def provide_result(self, value: Any, *, call_id: str | None = None) -> None:
        await super().provide_result(value)


class LosesKeywords(Thin):
    async def next(self) -> Event:
        came = await super().next()
        return replace(came, kwargs={}) if isinstance(came, FunctionCall) else came


class AnswersTheOldest(Thin):
    async def provide_result(self, value: Any, *, call_id: str | None = None) -> None:
        waiting = await self.inner.next()
        oldest = waiting.pending[0].call_id if isinstance(waiting, Waiting) else None
        await super().provide_result(value, call_id=call_id or oldest)


class ForgivesUnknownIds(Thin):
    async def provide_result(self, value: Any, *, call_id: str | None = None) -> None:
        try:
            await super().provide_result(value, call_id=call_id)
        except ValueError:
            return


class SharesResults(Thin):
    """Keeps the host's object until the code goes on, so that the host's later changes get in."""

    late: tuple[Any, str | None] | None = None

    async def next(self) -> Event:
        if self.late is not None:
            (value, call_id), self.late = self.late, None
            await super().provide_result(value, call_id=call_id)
        return await super().next()

    async def provide_result(self, value: Any, *, call_id: str | None = None) -> None:
        self.late = (value, call_id)


class StringsForUnportable(Thin):
    async def provide_result(self, value: Any, *, call_id: str | None = None) -> None:
        try:
            await super().provide_result(value, call_id=call_id)
        except TypeError:
            await super().provide_result(str(value), call_id=call_id)


class ErrorsAsText(Thin):
    async def provide_error(self, error: BaseException, *, call_id: str | None = None) -> None:
        await super().provide_result(str(error), call_id=call_id)


class ErrorsOfOneClass(Thin):
    async def provide_error(self, error: BaseException, *, call_id: str | None = None) -> None:
        await super().provide_error(RuntimeError(str(error)), call_id=call_id)


class JsonValues(Thin):
    async def next(self) -> Event:
        came = await super().next()
        if isinstance(came, ExecutionResult):
            return replace(came, output=json.loads(json.dumps(came.output, default=str)))
        return came


class OtherErrors(Thin):
    """Raises what `other` makes of the code's error."""

    async def next(self) -> Event:
        try:
            return await super().next()
        except CodeExecutionError as e:
            raise self.other(e) from None

    def other(self, error: CodeExecutionError) -> CodeExecutionError:
        raise NotImplementedError


class LosesStdout(OtherErrors):
    def other(self, error: CodeExecutionError) -> CodeExecutionError:
        return CodeRuntimeError(error.message)


class LosesTheClass(OtherErrors):
    def other(self, error: CodeExecutionError) -> CodeExecutionError:
        return CodeRuntimeError("the code failed", stdout=error.stdout)


class EveryErrorIsRuntime(OtherErrors):
    def other(self, error: CodeExecutionError) -> CodeExecutionError:
        return CodeRuntimeError(error.message) if isinstance(error, CodeSyntaxError) else error


class OtherResult(Thin):
    """Gives what `changes` says instead."""

    changes: ClassVar[dict[str, Any]] = {}

    async def next(self) -> Event:
        came = await super().next()
        return replace(came, **self.changes) if isinstance(came, ExecutionResult) else came


class WrongTier(OtherResult):
    changes: ClassVar[dict[str, Any]] = {"tier": "vm"}


class NoUsage(OtherResult):
    changes: ClassVar[dict[str, Any]] = {"usage": Usage()}


class CutsTheEnd(Thin):
    async def next(self) -> Event:
        came = await super().next()
        return replace(came, stdout=came.stdout[:10_000]) if isinstance(came, ExecutionResult) else came


class GivesTheEndOnce(Thin):
    ended = False

    async def next(self) -> Event:
        if self.ended:
            raise RuntimeError("already over")
        came = await super().next()
        self.ended = isinstance(came, ExecutionResult)
        return came


class LosesEventsWhenCancelled(Thin):
    async def next(self) -> Event:
        pulling = asyncio.ensure_future(super().next())
        pulling.add_done_callback(lambda task: task.exception())
        return await asyncio.shield(pulling)


class CancelsNothing(Thin):
    async def cancel(self) -> None:
        return


class BlocksTheLoop(Thin):
    async def next(self) -> Event:
        time.sleep(0.4)
        return await super().next()


class NoLimits(Unbroken):
    async def execute(self, code: str, functions: Functions = (), **options: Any) -> CodeExecution:
        return await super().execute(code, functions, **{**options, "limits": Limits()})


class StreamsAtTheEnd(Unbroken):
    async def execute(self, code: str, functions: Functions = (), **options: Any) -> CodeExecution:
        heard: list[tuple[Any, str]] = []
        tell = options.pop("on_output", None)
        execution = await super().execute(code, functions, on_output=lambda *piece: heard.append(piece), **options)

        class Late(Thin):
            async def next(self) -> Event:
                came = await super().next()
                if isinstance(came, ExecutionResult) and tell is not None:
                    for piece in heard:
                        tell(*piece)
                return came

        return Late(execution)


class KeepsState(Unbroken):
    """One session for everybody."""

    kept: CodeSession | None = None

    async def execute(self, code: str, functions: Functions = (), **options: Any) -> CodeExecution:
        if self.kept is None:
            self.block = self.inner.session()
            self.kept = await self.block.__aenter__()
        return await self.kept.execute(code, functions, **options)

    async def aclose(self) -> None:
        await self.block.__aexit__(None, None, None)
        await super().aclose()


class LeaksTheEnvironment(Unbroken):
    def make(self) -> CodeSandbox:
        return ProcessSandbox(env={"CONFORMANCE_API_KEY": "x", **os.environ})


class Modest(Unbroken):
    def __init__(self) -> None:
        super().__init__()
        self.constraints = replace(self.constraints, supports_generators=False)


class Boastful(Unbroken):
    def __init__(self) -> None:
        super().__init__()
        self.constraints = replace(self.constraints, packages=("no_such_package",))


class NeverCloses(Unbroken):
    async def aclose(self) -> None:
        return


class ProbesWrong(Unbroken):
    @classmethod
    def probe(cls) -> Availability:
        return Availability(state="missing", reason="not seen")


class RaisesOnForeignBytes(Unbroken):
    async def restore(self, checkpoint: bytes, **options: Any) -> CodeExecution | None:
        raise ValueError("not a checkpoint")


CAUGHT: tuple[tuple[type[Unbroken], str], ...] = (
    (broken(HandsCallsOutTwice), "waiting.sync_call"),
    (broken(HandsCallsOutTwice), "calls.thousand"),
    (broken(NewestFirst), "waiting.oldest_first"),
    (broken(ForgetsPending), "waiting.async_call"),
    (broken(OneIdForAll), "calls.unique_ids"),
    (broken(LosesKeywords), "calls.arguments"),
    (broken(AnswersTheOldest), "answers.id_needed"),
    (broken(ForgivesUnknownIds), "answers.unknown_id"),
    (broken(ForgivesUnknownIds), "answers.twice"),
    (broken(SharesResults), "calls.result_taken_at_once"),
    (broken(StringsForUnportable), "answers.refused_result"),
    (broken(ErrorsAsText), "tool_errors.uncaught"),
    (broken(ErrorsOfOneClass), "tool_errors.builtin_classes"),
    (broken(JsonValues), "values.tuple"),
    (broken(JsonValues), "values.date"),
    (broken(JsonValues), "values.dict_any_key"),
    (broken(LosesStdout), "output.kept_on_error"),
    (broken(LosesTheClass), "failures.runtime"),
    (broken(EveryErrorIsRuntime), "failures.syntax"),
    (broken(WrongTier), "results.tier"),
    (broken(NoUsage), "results.usage"),
    (broken(CutsTheEnd), "output.cut_in_the_middle"),
    (broken(GivesTheEndOnce), "results.result_repeats"),
    (broken(LosesEventsWhenCancelled), "cancellation.next_cancelled"),
    (broken(CancelsNothing), "cancellation.waiting"),
    (broken(CancelsNothing), "descendants.cancelled"),
    (broken(BlocksTheLoop), "concurrency.loop_alive"),
    (NoLimits, "clock.endless_loop"),
    (NoLimits, "limits.calls"),
    (NoLimits, "limits.large_result"),
    (StreamsAtTheEnd, "output.streamed_before_call"),
    (KeepsState, "results.fresh_state"),
    (LeaksTheEnvironment, "secrets.environment"),
    (Modest, "flags.supports_generators"),
    (Boastful, "flags.packages"),
    (NeverCloses, "cancellation.aclose"),
    (ProbesWrong, "sandbox.probe"),
    (RaisesOnForeignBytes, "checkpoints.foreign"),
)


@pytest.mark.parametrize(("sandbox", "check_id"), CAUGHT, ids=[f"{s.__name__}-{c}" for s, c in CAUGHT])
async def test_a_broken_sandbox_fails_the_check_that_names_it(sandbox: type[Unbroken], check_id: str) -> None:
    check = replace(BY_ID[check_id], seconds=4.0)
    made: list[Unbroken] = []

    def factory() -> Unbroken:
        made.append(sandbox())
        return made[-1]

    try:
        outcome = await run_check(check, factory)
    finally:
        for one in made:
            await one.inner.aclose()
    assert outcome.state == "failed", outcome
    assert outcome.message


@pytest.mark.parametrize("check_id", sorted({check_id for _, check_id in CAUGHT}))
async def test_the_same_sandbox_unbroken_passes(check_id: str) -> None:
    outcome = await run_check(BY_ID[check_id], Unbroken)
    assert (outcome.state, outcome.message) == ("passed", "")
