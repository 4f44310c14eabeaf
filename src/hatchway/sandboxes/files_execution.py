"""Executions with files: what the code left in `/output` is added to the end of the action, once it is safe to read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from hatchway.core.calls import FunctionCall, Waiting
from hatchway.core.errors import CodeExecutionError, CodeLimitError, HatchwayError, SandboxCrashed
from hatchway.core.limits import Limits
from hatchway.core.recording import RecordedAnswer, Recording
from hatchway.core.results import ExecFile, ExecutionResult
from hatchway.core.sandbox import OnDisplay
from hatchway.sandboxes.repeatable import Repeatable

if TYPE_CHECKING:
    from hatchway.sandboxes.guest_execution import GuestExecution
    from hatchway.sandboxes.guest_process import GuestOutput, GuestProcess

End = ExecutionResult | HatchwayError


def with_files(
    execution: GuestExecution, process: GuestProcess, limits: Limits, *, is_session: bool
) -> GuestExecution | FilesExecution:
    """The execution, which collects files where its process has a place for them."""
    if process.output is None:
        return execution
    return FilesExecution(execution, process, process.output, limits, is_session=is_session)


class Mortal(Protocol):
    """Something that code runs in."""

    @property
    def is_dead(self) -> bool:
        """Whether it takes no more actions."""
        ...

    async def wait_gone(self) -> None:
        """Until nothing of it writes any more."""
        ...


class FilesExecution(Repeatable):
    """An action in a process with `/output`. A one-shot process is dead before its files are read.

    Args:
        execution: The action itself.
        process: Where it runs.
        output: Where it leaves files.
        limits: The quotas of the files.
        is_session: The process lives on, and so does its `/output`.
    """

    def __init__(
        self, execution: Repeatable, process: Mortal, output: GuestOutput, limits: Limits, *, is_session: bool
    ) -> None:
        self._execution, self._process, self._output = execution, process, output
        self._limits, self._is_session = limits, is_session
        self._end: End | None = None
        self._ending: asyncio.Task[End] | None = None

    async def next(self) -> FunctionCall | Waiting | ExecutionResult:
        """As the contract says."""
        if self._end is None:
            try:
                event = await self._execution.next()
            except HatchwayError as e:
                self._end = await self._finished(e)
            else:
                if not isinstance(event, ExecutionResult):
                    return event
                self._end = await self._finished(event)
        return _told(self._end)

    def poll(self) -> FunctionCall | Waiting | ExecutionResult | None:
        """As the contract says; the end is never there at once, files have to be read first."""
        if self._end is not None:
            return _told(self._end)
        return None if self._execution.is_over else self._execution.poll()

    @property
    def is_over(self) -> bool:
        """As `Repeatable` says."""
        return self._execution.is_over

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
        if not self._is_session and self._ending is None:
            self._output.close()

    async def _finished(self, end: End) -> End:
        """The end with its files; whoever is cancelled while they are read finds them the next time."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._with_files(end))
        return await asyncio.shield(self._ending)

    async def _with_files(self, end: End) -> End:
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
        is_last = not self._is_session or self._process.is_dead
        if is_last:
            await self._process.wait_gone()
        try:
            return await self._output.collected(self._limits)
        finally:
            if is_last:
                self._output.close()


def _told(end: End) -> ExecutionResult:
    if isinstance(end, HatchwayError):
        raise end.with_traceback(None)
    return end
