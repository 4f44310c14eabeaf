"""Calls over another transport: the guest's own channel carries the action and its end, the other one the calls."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from hatchway.core.calls import FunctionCall
from hatchway.core.errors import TransportError
from hatchway.core.limits import Limits
from hatchway.core.recording import RecordedAnswer
from hatchway.core.sandbox import Functions
from hatchway.core.transport import CallbackTransport, Idle
from hatchway.transports import messages
from hatchway.transports.guest_link import Listener, Said
from hatchway.transports.stdio import StdinStdoutTransport
from hatchway.transports.transcript import Transcript


class SideChannel:
    """A guest's channel whose calls go by a transport of the caller's choice, for one execution.

    The transport's `stub_code` runs in the guest before the action, with its `env_vars`; it defines the functions.

    Args:
        channel: The guest's own.
        calls: The other one; it is stopped at the end.
        value_bytes: Bytes one value may take.
    """

    def __init__(self, channel: StdinStdoutTransport, calls: CallbackTransport, *, value_bytes: int) -> None:
        self._channel, self._calls = channel, calls
        self._value_bytes = value_bytes
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: Listener | None = None
        self.transcript: Transcript | None = Transcript()
        """What was said; None once a call came of which the transport has no line."""

    def listen(self, listener: Listener) -> None:
        """Hand everything both channels bring to `listener`."""
        self._listener = listener
        self._channel.listen(self._on_said)

    async def execute(
        self,
        code: str,
        functions: Functions,
        inputs: Mapping[str, Any],
        limits: Limits,
        *,
        is_session: bool,
        again: messages.Again | None = None,
    ) -> asyncio.Future[None] | None:
        """As `StdinStdoutTransport.execute`."""
        config = await self._calls.start(functions)
        if self.transcript is not None:
            self.transcript.begin(messages.execute(code, functions, inputs, limits, is_session=is_session, again=again))
        self._do(self._receive_calls())
        return await self._channel.execute(
            code, functions, inputs, limits, is_session=is_session, again=again, config=config
        )

    def answer(self, value: Any, call_id: str) -> asyncio.Future[None]:
        """As `StdinStdoutTransport.answer`."""
        self._answered(call_id, messages.result(call_id, value, limit=self._value_bytes))
        return self._do(self._calls.send_result(value, call_id=call_id))

    def answer_error(self, error: BaseException, call_id: str) -> asyncio.Future[None]:
        """As `StdinStdoutTransport.answer_error`."""
        self._answered(call_id, messages.error(call_id, error))
        return self._do(self._calls.send_error(error, call_id=call_id))

    def answer_together(self, answers: Sequence[RecordedAnswer]) -> asyncio.Future[None]:
        """As `StdinStdoutTransport.answer_together`, as near as another transport comes to it."""
        for answer in answers:
            self._answered(answer.call_id, messages.answer(answer, limit=self._value_bytes))
        return self._do(self._answer_each(answers))

    def read_available(self) -> None:
        """As `StdinStdoutTransport.read_available`."""
        self._channel.read_available()

    def read_early(self) -> bool:
        """As `StdinStdoutTransport.read_early`; calls do not come by it."""
        return False

    def detach(self) -> None:
        """The action has ended: nothing more is taken, and the other transport is stopped."""
        self._listener = None
        self._channel.detach()
        self._do(self._calls.stop())

    async def _answer_each(self, answers: Sequence[RecordedAnswer]) -> None:
        for answer in answers:
            if answer.error is not None:
                await self._calls.send_error(answer.error, call_id=answer.call_id)
            else:
                await self._calls.send_result(answer.value, call_id=answer.call_id)

    async def _receive_calls(self) -> None:
        try:
            while True:
                said = await self._calls.receive()
                if isinstance(said, Idle):
                    self._on_said([], said.answers)
                else:
                    if isinstance(said, FunctionCall):
                        self._write_down(said)
                    self._on_said([said], None)
        except EOFError:
            pass  # the other transport has nothing more; the end comes by the guest's own
        except TransportError as e:
            self._on_said([e], None)

    def _write_down(self, call: FunctionCall) -> None:
        line = self._calls.line(call)
        if self.transcript is None or line is None:
            self.transcript = None
        elif not self.transcript.called(call.call_id, line):
            raise TransportError(f"the call id {call.call_id} came twice")

    def _answered(self, call_id: str, frame: bytes) -> None:
        if self.transcript is not None:
            self.transcript.answered(call_id, frame)

    def _on_said(self, batch: list[Said], claim: int | None) -> None:
        if self._listener is not None:
            self._listener(batch, claim)

    def _do(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
