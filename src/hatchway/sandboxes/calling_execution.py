"""The part of a guest's execution that is about its calls: taken in, handed out, answered."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from hatchway.core.calls import FunctionCall, as_signature, pending_id
from hatchway.core.errors import HatchwayError, ToolError, TransportError
from hatchway.core.limits import Limits
from hatchway.core.recording import RecordedAnswer
from hatchway.core.sandbox import Functions
from hatchway.sandboxes.beside import CallsBeside
from hatchway.sandboxes.endings import over
from hatchway.sandboxes.guest_process import GuestProcess
from hatchway.sandboxes.recorded_execution import RecordedExecution, sent
from hatchway.transports import messages
from hatchway.transports.guest.wakeup import Wakeup

if TYPE_CHECKING:
    import asyncio

A = TypeVar("A")


class CallingExecution(RecordedExecution):
    """What `GuestExecution` is about its calls.

    Args:
        process: Where the guest runs.
        limits: How many calls it may make, and have open at a time.
    """

    _came: Wakeup
    _is_told: bool

    def __init__(self, process: GuestProcess, limits: Limits) -> None:
        self._process, self._limits = process, limits
        self._pending: dict[str, FunctionCall] = {}
        self._unread: deque[FunctionCall] = deque()
        self._offered: Functions = ()
        self._names: frozenset[str] | None = None
        self._beside: CallsBeside | None = None
        self._made = self._answered = 0
        self._is_idle = False
        self._is_alive = True  # the code runs, as far as anybody knows; an answer to dead code is dropped

    @abstractmethod
    def _strike(self, why: HatchwayError) -> None:
        """Kill the code; once it is dead, `next` raises `why`."""

    async def provide_result(self, value: Any, *, call_id: str | None = None) -> None:
        """As the contract says; also a value past `Limits.value_bytes` cannot cross."""
        await self._answer(value, call_id, self._channel.answer)

    async def provide_error(self, error: BaseException, *, call_id: str | None = None) -> None:
        """As the contract says."""
        await self._answer(error, call_id, self._channel.answer_error)

    def offers(self, function_name: str) -> bool:
        """Whether the code was given this function."""
        if self._names is None:
            self._names = frozenset(as_signature(function).name for function in self._offered)
        return function_name in self._names

    async def call_beside(self, function_name: str, arguments: Mapping[str, Any]) -> Any:
        """What the driver answers to a call that the code made by another way than the channel, as by a proxy.

        `next` gives it like any other, with an id that the code cannot know.

        Raises:
            ToolError: The driver's error, or the action has ended.
        """
        if not self._is_alive:
            raise ToolError("the action has ended")
        if self._beside is None:
            self._beside = CallsBeside(self._process.cpu_seconds, self._on_quiet)
        call, answer = self._beside.new(function_name, arguments)
        if (transcript := self._channel.transcript) is not None:
            transcript.called_beside(call.call_id, messages.beside(call, answers=transcript.given))
        self._on_call(call)
        self._came.wake()
        return await answer

    def count_call(self) -> None:
        """Count a call that nobody but the sandbox itself answers.

        Raises:
            ToolError: It is one too many, or the action has ended.
        """
        if not self._is_alive or self._is_over_calls():
            raise ToolError("the action has ended")

    async def _answer(
        self, answer: A, call_id: str | None, send: Callable[[A, str], asyncio.Future[None] | None]
    ) -> None:
        call_id = self._pending_id(call_id)
        if self._beside is not None and call_id in self._beside:
            return self._answer_beside(self._beside, call_id, answer)
        sending = None
        try:
            if self._is_alive:
                sending = send(answer, call_id)
        except TransportError:
            pass  # it died just now, and `next` will tell
        self._go_on(call_id)
        if sending is not None:
            await sent(sending)

    def _pending_id(self, call_id: str | None) -> str:
        known = {} if self._is_told else self._pending
        return pending_id(call_id, known)

    def _go_on(self, call_id: str) -> None:
        """The call is answered, so the code does not wait any more."""
        del self._pending[call_id]
        self._answered += 1
        self._is_idle = False
        if self._is_alive:
            self._clock.run()

    def _answer_beside(self, beside: CallsBeside, call_id: str, answer: Any) -> None:
        if (transcript := self._channel.transcript) is not None:
            is_error = isinstance(answer, BaseException)
            recorded = RecordedAnswer(call_id=call_id, **{"error" if is_error else "value": answer})
            transcript.answered(call_id, messages.answer(recorded, limit=sys.maxsize))
        del self._pending[call_id]
        self._is_idle = False
        if self._is_alive:
            self._clock.run()
        beside.answer(call_id, answer)

    def _on_quiet(self) -> None:
        """The code waits for an answer beside the channel, as far as one can see."""
        if self._is_alive and not self._unread and not self._is_idle:
            self._is_idle = True
            self._clock.stand()
            self._came.wake()

    def _on_call(self, call: FunctionCall) -> None:
        if self._is_over_calls():
            return
        if not self.offers(call.function_name):
            self._refuse(call)
            return
        if len(self._pending) >= self._limits.pending_calls:
            self._strike(
                over("pending_calls", f"more than {self._limits.pending_calls} calls were unanswered at a time")
            )
            return
        self._output.drain()
        self._pending[call.call_id] = call
        self._unread.append(call)
        self._is_idle = False
        self._clock.run()

    def _refuse(self, call: FunctionCall) -> None:
        """What was not offered is nobody's to answer: the code forged it, or kept it from an earlier action."""
        self._pending[call.call_id] = call
        try:
            sending = self._channel.answer_error(ToolError(f"there is no tool {call.function_name}"), call.call_id)
        except TransportError:
            sending = None  # it died just now, and `next` will tell
        if sending is not None:
            sending.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._go_on(call.call_id)

    def _is_over_calls(self) -> bool:
        self._made += 1
        if self._made > self._limits.calls:
            self._strike(over("calls", f"the code made more than {self._limits.calls} tool calls"))
        return self._made > self._limits.calls
