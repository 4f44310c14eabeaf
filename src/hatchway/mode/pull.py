"""The pull loop, once, for every backend and adapter: what the code does next, and each call served."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, assert_never

from hatchway.core.calls import FunctionCall, Waiting
from hatchway.core.decisions import Settlement
from hatchway.core.errors import CodeExecutionError, CodeLimitError
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeExecution
from hatchway.gate.limits import CallBudget
from hatchway.mode.call_book import CallBook
from hatchway.mode.serve import CallServer

LOOK_SECONDS = 0.05
"""Between two looks at code that waits while its calls are under way."""


@dataclass(frozen=True, slots=True)
class Paused:
    """The code stands at calls that wait for decisions; nothing of the run is under way."""

    pending: tuple[FunctionCall, ...]


class PullLoop:
    """Pulls from an execution until it ends or pauses, and has each call served."""

    def __init__(self, server: CallServer, budget: CallBudget) -> None:
        self._server = server
        self._budget = budget
        self._tasks: set[asyncio.Task[None]] = set()
        self._fresh: list[FunctionCall] = []
        self._repeated: set[str] = set()
        self._answered = asyncio.Event()
        self._failure: BaseException | None = None

    @property
    def execution(self) -> CodeExecution:
        """What is pulled from."""
        return self._server.execution

    def undecided(self) -> tuple[str, ...]:
        """The ids of the calls that wait for a person."""
        return tuple(self._server.held)

    async def drive(self) -> ExecutionResult | Paused:
        """Pull until the code ends or everything it waits for is held for a person.

        Raises:
            CodeExecutionError: The code failed; its calls so far are in `calls`.
            SandboxCrashed, TransportError: The host failed.
        """
        try:
            outcome = await self._pull()
        except CodeExecutionError as e:
            await self._finish_tasks()
            if self._failure is not None:
                raise self._failure from None
            e.calls, e.earlier_calls = self._server.records(), self._server.forgotten
            raise
        except BaseException:
            await self.abandon()
            raise
        if isinstance(outcome, Paused):
            return outcome
        await self._finish_tasks()
        return replace(outcome, usage=replace(outcome.usage, calls=self._budget.used))

    def go_on(self, decisions: Mapping[str, Settlement], execution: CodeExecution) -> None:
        """Settle held calls, some or all, on an execution that stands at them; then `drive` again."""
        if execution is not self._server.execution:
            self.stand_at(execution)
        for call_id, decision in decisions.items():
            self._start(self._server.settle(call_id, decision))

    def write_to(self, book: CallBook) -> None:
        """Have the calls written down here from now on."""
        self._server.write_to(book)

    def stand_at(self, execution: CodeExecution) -> None:
        """Go on with an execution that was restored: it gives the held calls once more."""
        self._repeated = set(self._server.held)
        self._server.execution = execution

    async def abandon(self) -> None:
        """Kill the code and drop its calls; shielded, so that a cancelled caller leaves nothing behind."""
        killing = asyncio.ensure_future(self._abandon())
        try:
            await asyncio.shield(killing)
        except asyncio.CancelledError:
            await killing
            raise

    async def _abandon(self) -> None:
        await self._finish_tasks()
        await self.execution.cancel()

    async def _finish_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _pull(self) -> ExecutionResult | Paused:
        execution = self._server.execution
        while True:
            event = execution.poll()
            if event is None:
                if self._fresh:
                    self._start_fresh()  # the code goes on meanwhile: begin what it asked for
                event = await execution.next()
            match event:
                case FunctionCall():
                    if (over := self._take(event)) is not None:
                        raise await self._killed(over) from None
                case Waiting(pending=pending):
                    if len(self._fresh) == 1 and not self._tasks:
                        await self._server.serve(self._fresh.pop())  # a lone call needs no task of its own
                        is_paused = len(self._server.held) == len(pending)
                    else:
                        is_paused = await self._wait()
                    if is_paused:
                        return Paused(self._server.pending())
                case ExecutionResult():
                    return event
                case _:
                    assert_never(event)

    def _take(self, call: FunctionCall) -> CodeLimitError | None:
        """Reserve the call's place in the budget; the error when there is none left."""
        if call.call_id in self._repeated:
            self._repeated.discard(call.call_id)
            return None
        try:
            self._budget.reserve()
        except CodeLimitError as e:
            return e
        self._fresh.append(call)
        return None

    async def _wait(self) -> bool:
        """Wait until a call is answered, or a while. True: nothing is under way, every pending call is held."""
        self._answered.clear()
        self._start_fresh()
        if not self._tasks:
            return True
        # code that was seen to wait, or claimed to, may go on, end or be killed: look at it now and then
        again = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._answered.set)
        try:
            await self._answered.wait()
        finally:
            again.cancel()
        return False

    def _start_fresh(self) -> None:
        for call in self._fresh:
            self._start(self._server.serve(call))
        self._fresh.clear()

    def _start(self, serving: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(serving)
        self._tasks.add(task)
        task.add_done_callback(self._served)

    def _served(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._answered.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error
            killing = asyncio.ensure_future(self.execution.cancel())  # `next` raises, and `drive` raises the failure
            self._tasks.add(killing)
            killing.add_done_callback(self._tasks.discard)

    async def _killed(self, error: CodeLimitError) -> CodeLimitError:
        """Kill the code for a limit; the error takes along what it had printed."""
        await self.execution.cancel()
        try:
            await self.execution.next()
        except CodeExecutionError as last:
            error.stdout, error.stderr, error.files = last.stdout, last.stderr, last.files
        return error
