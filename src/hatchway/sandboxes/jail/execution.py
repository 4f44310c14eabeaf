"""Executions with files: what the code left in `/output` is added to the result once it is safe to read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hatchway.core.calls import FunctionCall, Waiting
from hatchway.core.errors import CodeExecutionError, CodeLimitError, HatchwayError, SandboxCrashed
from hatchway.core.limits import Limits
from hatchway.core.recording import RecordedAnswer, Recording
from hatchway.core.results import ExecFile, ExecutionResult
from hatchway.core.sandbox import OnDisplay
from hatchway.sandboxes.guest_execution import GuestExecution
from hatchway.sandboxes.jail.jailed_process import JailedProcess
from hatchway.sandboxes.repeatable import Repeatable


class FilesExecution(Repeatable):
    """An execution in a jail with `/output`. A one-shot child is dead before its files are read.

    Args:
        execution: The action itself.
        child: Where it runs.
        limits: The quotas of the files.
        is_session: The child lives on, and so does its `/output`.
    """

    def __init__(self, execution: GuestExecution, child: JailedProcess, limits: Limits, *, is_session: bool) -> None:
        self._execution, self._child = execution, child
        self._limits, self._is_session = limits, is_session
        self._end: ExecutionResult | HatchwayError | None = None

    async def next(self) -> FunctionCall | Waiting | ExecutionResult:
        """As the contract says."""
        if self._end is not None:
            return self._told()
        try:
            event = await self._execution.next()
        except HatchwayError as e:
            self._end = await self._with_files(e)
            return self._told()
        if isinstance(event, ExecutionResult):
            self._end = await self._with_files(event)
            return self._told()
        return event

    def poll(self) -> FunctionCall | Waiting | ExecutionResult | None:
        """As the contract says; the end is never there at once, files have to be read first."""
        if self._end is not None:
            return self._told()
        return None if self._execution.is_over else self._execution.poll()

    def watch_displays(self, on_display: OnDisplay) -> None:
        """As the contract says."""
        self._execution.watch_displays(on_display)

    async def provide_result(self, value: Any, *, call_id: str | None = None) -> None:
        """As the contract says."""
        await self._execution.provide_result(value, call_id=call_id)

    async def provide_error(self, error: BaseException, *, call_id: str | None = None) -> None:
        """As the contract says."""
        await self._execution.provide_error(error, call_id=call_id)

    async def provide_answers(self, answers: Sequence[RecordedAnswer]) -> None:
        """As the contract says."""
        await self._execution.provide_answers(answers)

    def trail(self, call_id: str) -> Mapping[str, Any]:
        """As the contract says."""
        return self._execution.trail(call_id)

    @property
    def ran(self) -> float:
        """As the contract says."""
        return self._execution.ran

    def recording(self) -> Recording | None:
        """As `Repeatable` says."""
        return self._execution.recording()

    def stands_at(self, ran: float) -> None:
        """As `Repeatable` says."""
        self._execution.stands_at(ran)

    def dump(self, own_id: Callable[[str], str] = str) -> bytes | None:
        """As the contract says; running the code again writes its files again."""
        return self._execution.dump(own_id)

    async def cancel(self) -> None:
        """As the contract says."""
        await self._execution.cancel()
        if not self._is_session and self._child.output is not None and self._end is None:
            self._child.output.close()

    def _told(self) -> ExecutionResult:
        assert self._end is not None
        if isinstance(self._end, HatchwayError):
            raise self._end.with_traceback(None)
        return self._end

    async def _with_files(self, end: ExecutionResult | HatchwayError) -> ExecutionResult | HatchwayError:
        if not self._is_session:
            await self._child.wait_gone()
        try:
            files = await self._collected()
        except CodeLimitError as e:
            if isinstance(end, ExecutionResult):
                e.stdout, e.stderr, e.displays = end.stdout, end.stderr, end.displays
                return e
            files = e.files
        except SandboxCrashed as e:
            return e if isinstance(end, ExecutionResult) else end
        if isinstance(end, ExecutionResult):
            return replace(end, files=files)
        if isinstance(end, CodeExecutionError):
            end.files = files
        return end

    async def _collected(self) -> tuple[ExecFile, ...]:
        output = self._child.output
        if output is None or output.fd < 0:
            return ()
        try:
            return await asyncio.to_thread(output.collect, self._limits)
        finally:
            if not self._is_session or self._child.is_dead:
                output.close()
