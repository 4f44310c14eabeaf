"""One action in a micro-VM: it makes calls, and stands still inside one function until the host answers one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, cast

from hatchway.core import codec
from hatchway.core.calls import FunctionCall, Waiting, pending_id
from hatchway.core.errors import (
    CodeExecutionError,
    CodeRuntimeError,
    CodeSyntaxError,
    CodeTimeoutError,
    HatchwayError,
    SandboxCrashed,
    described,
)
from hatchway.core.limits import Limits
from hatchway.core.output import OutputBuffer
from hatchway.core.results import ExecutionResult, Usage
from hatchway.core.sandbox import CodeExecution, OnOutput
from hatchway.core.values import to_wire
from hatchway.sandboxes.clock import WallClock
from hatchway.sandboxes.endings import over
from hatchway.sandboxes.hyperlight.kept import KeptVm

GiveBack = Callable[[KeptVm, bool], Awaitable[None]]
"""Takes the micro-VM back; whether it can serve again."""


class HyperlightExecution(CodeExecution):
    """The handle of one action.

    Args:
        kept: The micro-VM.
        order: What to run.
        limits: Of this action.
        on_output: Sees what is printed, line by line.
        give_back: Called once, at the end.
    """

    is_dump_exact: ClassVar[bool] = False

    def __init__(
        self, kept: KeptVm, order: bytes, limits: Limits, on_output: OnOutput | None, give_back: GiveBack
    ) -> None:
        self._kept, self._limits, self._on_output, self._give_back = kept, limits, on_output, give_back
        self._printed = {"stdout": OutputBuffer(limits.output_bytes), "stderr": OutputBuffer(limits.output_bytes)}
        self._pending: dict[str, FunctionCall] = {}
        self._calls = 0
        self._is_standing = False
        self._ahead = 0  # answers the guest has not taken yet: it takes one each time it would stand still
        self._end: ExecutionResult | HatchwayError | None = None
        self._why: CodeExecutionError | None = None
        self._lock = asyncio.Lock()
        self._clock = WallClock(limits.wall_seconds, lambda: 0.0, self._on_over)
        kept.send(order)

    async def next(self) -> FunctionCall | Waiting | ExecutionResult:
        """As the contract says."""
        async with self._lock:
            while self._end is None:
                if self._is_standing:
                    return Waiting(tuple(self._pending.values()))
                call = await self._took(await self._kept.heard())
                if call is not None:
                    return call
        if isinstance(self._end, HatchwayError):
            raise self._end
        return self._end

    async def provide_result(self, value: Any, *, call_id: str | None = None) -> None:
        """As the contract says."""
        call = self._find(call_id)
        to_wire(value, root="result")
        self._answer(call, {"value": value})

    async def provide_error(self, error: BaseException, *, call_id: str | None = None) -> None:
        """As the contract says."""
        call, told = self._find(call_id), described(error)
        self._answer(call, {"error": [told["type"], told["message"]]})

    def dump(self) -> bytes | None:
        """A micro-VM inside a call cannot be dumped: its snapshots are taken between actions."""
        if not self._is_standing:
            raise RuntimeError("the execution is not waiting")
        return None

    async def cancel(self) -> None:
        """As the contract says: the keeper is killed."""
        if self._end is None:
            self._why = self._why or CodeRuntimeError("the code was cancelled")
            self._kept.kill()
            if not self._lock.locked():
                await self._over(self._why, is_whole=False)

    @property
    def ran(self) -> float:
        """Seconds the code has run."""
        return self._clock.ran

    async def _took(self, told: dict[str, Any] | None) -> FunctionCall | None:
        match told:
            case {"type": "call", "name": str(name), "args": list(), "kwargs": dict(), "stands": bool(stands)}:
                self._calls += 1
                args, kwargs = cast(list[Any], told["args"]), cast(dict[str, Any], told["kwargs"])
                call = FunctionCall(call_id=str(self._calls), function_name=name, args=tuple(args), kwargs=kwargs)
                self._pending[call.call_id] = call
                if stands:
                    self._stand()
                return call
            case {"type": "wait"} if self._pending or self._ahead:
                self._stand()
            case {"type": "output", "stream": "stdout" | "stderr" as stream, "text": str(text)}:
                self._printed[stream].append(text)
                if self._on_output is not None:
                    self._on_output(stream, text)
            case {"type": "end", "kind": kind, "told": said}:
                is_ready = kind != "died" and await self._kept.heard() == {"type": "ready"}
                await self._over(self._ended(kind, said), is_whole=is_ready)
            case None:
                await self._over(self._why or SandboxCrashed("the micro-VM's keeper died"), is_whole=False)
            case _:  # the guest can say anything by its one function: that is the code's fault, and its end
                self._why = self._why or CodeRuntimeError("the code broke the protocol of its sandbox")
                self._kept.kill()
        return None

    def _ended(self, kind: Any, said: Any) -> ExecutionResult | HatchwayError:
        match kind:
            case None:
                return ExecutionResult(output=said)
            case "syntax":
                return CodeSyntaxError(str(said))
            case "memory":
                return over("memory_bytes", str(said))
            case _:
                return CodeRuntimeError(str(said) or "the interpreter died")

    async def _over(self, end: ExecutionResult | HatchwayError, *, is_whole: bool) -> None:
        self._clock.stop()
        self._pending.clear()
        stdout, stderr = (self._printed[name].text() for name in ("stdout", "stderr"))
        files = await self._kept.output.collected(self._limits)
        if isinstance(end, ExecutionResult):
            usage = Usage(wall_seconds=self._clock.ran, calls=self._calls)
            end = ExecutionResult(output=end.output, stdout=stdout, stderr=stderr, files=files, usage=usage, tier="vm")
        elif isinstance(end, CodeExecutionError):
            end.stdout, end.stderr, end.files = stdout, stderr, files
        self._end = end
        await self._give_back(self._kept, is_whole)

    def _on_over(self) -> None:
        seconds = self._limits.wall_seconds
        self._why = CodeTimeoutError(f"the code ran longer than {seconds:g} s", hint="raise Limits.wall_seconds")
        self._kept.kill()

    def _stand(self) -> None:
        """The guest would stand still: it takes an answer that was given ahead, or waits for one."""
        if self._ahead:
            self._ahead -= 1
        else:
            self._is_standing = True
            self._clock.stand()

    def _find(self, call_id: str | None) -> FunctionCall:
        return self._pending[pending_id(call_id, self._pending)]

    def _answer(self, call: FunctionCall, message: dict[str, Any]) -> None:
        del self._pending[call.call_id]
        if self._is_standing:
            self._is_standing = False
            self._clock.run()
        else:
            self._ahead += 1
        self._kept.send(codec.dumps({"id": int(call.call_id), **message}))
