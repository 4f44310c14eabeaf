"""Executions with `/output`: the files the relay hands out are added to the end of the action."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from hatchway.core.calls import FunctionCall, Waiting
from hatchway.core.errors import CodeExecutionError, CodeLimitError, HatchwayError
from hatchway.core.recording import RecordedAnswer, Recording
from hatchway.core.results import ExecFile, ExecutionResult
from hatchway.core.sandbox import OnDisplay
from hatchway.sandboxes.container.process import ContainerProcess
from hatchway.sandboxes.guest_execution import GuestExecution
from hatchway.sandboxes.repeatable import Repeatable

FILES_SECONDS = 10.0
"""Files of a live session that have not come after this are left where they are."""


class ContainerExecution(Repeatable):
    """An action in a container with `/output`. A one-shot container is gone before its files are given.

    Args:
        execution: The action itself.
        container: Where it runs.
        is_session: The container lives on, and so does its `/output`.
    """

    def __init__(self, execution: GuestExecution, container: ContainerProcess, *, is_session: bool) -> None:
        self._execution, self._container = execution, container
        self._is_session = is_session
        self._end: ExecutionResult | HatchwayError | None = None
        self._ending: asyncio.Task[ExecutionResult | HatchwayError] | None = None

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
        return self._told(self._end)

    def poll(self) -> FunctionCall | Waiting | ExecutionResult | None:
        """As the contract says; the end is never there at once, files have to come first."""
        if self._end is not None:
            return self._told(self._end)
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

    def _told(self, end: ExecutionResult | HatchwayError) -> ExecutionResult:
        if isinstance(end, HatchwayError):
            raise end.with_traceback(None)
        return end

    async def _finished(self, end: ExecutionResult | HatchwayError) -> ExecutionResult | HatchwayError:
        """The end with its files; whoever is cancelled while they come finds them the next time."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._with_files(end))
        return await asyncio.shield(self._ending)

    async def _with_files(self, end: ExecutionResult | HatchwayError) -> ExecutionResult | HatchwayError:
        try:
            files = await self._collected()
        except CodeLimitError as e:
            if isinstance(end, ExecutionResult):
                e.stdout, e.stderr, e.displays = end.stdout, end.stderr, end.displays
                return e
            files = e.files
        if isinstance(end, ExecutionResult):
            return replace(end, files=files)
        if isinstance(end, CodeExecutionError):
            end.files = files
        return end

    async def _collected(self) -> tuple[ExecFile, ...]:
        if not self._is_session or self._container.is_dead:
            await self._container.wait_gone()
        else:
            self._container.ask_for_files()
            with suppress(TimeoutError):
                async with asyncio.timeout(FILES_SECONDS):
                    await self._container.files.arrived()
        return self._container.files.collected()
