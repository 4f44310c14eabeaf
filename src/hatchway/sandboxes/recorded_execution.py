"""The part of a guest's execution that is about what was said: told again, dumped, and said once more."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hatchway.core.calls import FunctionCall
from hatchway.core.errors import HatchwayError, TransportError
from hatchway.core.recording import RecordedAnswer, Recording
from hatchway.core.results import ExecutionResult
from hatchway.sandboxes.beside import CallsBeside
from hatchway.sandboxes.clock import WallClock
from hatchway.sandboxes.guest_process import GuestChannel
from hatchway.sandboxes.output_pipes import OutputPipes
from hatchway.sandboxes.recorded import Origin, Said, dumped
from hatchway.sandboxes.repeatable import Repeatable
from hatchway.transports import messages


class RecordedExecution(Repeatable):
    """What `GuestExecution` is besides running: a record of itself."""

    _channel: GuestChannel
    _clock: WallClock
    _output: OutputPipes
    _origin: Origin | None
    _beside: CallsBeside | None
    _unread: deque[FunctionCall]
    _end: ExecutionResult | HatchwayError | None
    _is_alive: bool
    _is_idle: bool

    @abstractmethod
    def _pending_id(self, call_id: str | None) -> str:
        """The call an answer is for."""

    @abstractmethod
    def _go_on(self, call_id: str) -> None:
        """The call is answered, so the code does not wait any more."""

    async def provide_answers(self, answers: Sequence[RecordedAnswer]) -> None:
        """As the contract says."""
        if len(answers) == 1:
            return await super().provide_answers(answers)
        ids = [self._pending_id(answer.call_id) for answer in answers]
        sending = None
        try:
            if self._is_alive:
                sending = self._channel.answer_together(answers)
        except TransportError:
            pass  # it died just now, and `next` will tell
        for call_id in ids:
            self._go_on(call_id)
        if sending is not None:
            await sent(sending)

    def trail(self, call_id: str) -> Mapping[str, Any]:
        """As the contract says."""
        transcript = self._channel.transcript
        line = transcript.pending.get(call_id) if transcript is not None else None
        return messages.trail_of(line) if line is not None else {}

    @property
    def ran(self) -> float:
        """As the contract says."""
        return self._clock.ran

    def stands_at(self, ran: float) -> None:
        """The code was led to where it stood before: from here on its time counts as if it had run so long."""
        self._clock.set(ran)

    def recording(self) -> Recording | None:
        """The action with what was said so far; None where nobody wrote it down, or it is too much."""
        said = self.said()
        return None if said is None else said.recording()

    def said(self) -> Said | None:
        """As `recording`, in the form that takes little memory and no time to have."""
        transcript = self._channel.transcript
        if transcript is None or transcript.is_dropped or self._origin is None:
            return None
        start = replace(self._origin.recording, printed=self._printed(), ran=self._clock.ran)
        return Said(start, transcript.order, transcript.calls, transcript.answers)

    def dump(self, own_id: Callable[[str], str] = str) -> bytes | None:
        """As the contract says: a process cannot be stored, but what it said can, and be said again.

        Args:
            own_id: The id by which others know a call.
        """
        if not self._is_idle or self._unread or not self._is_alive:
            raise RuntimeError("the execution is not waiting")
        recording, origin = self.recording(), self._origin
        return None if recording is None or origin is None else dumped(recording, origin, own_id)

    def _printed(self) -> Mapping[str, int]:
        if self._end is None:
            self._output.drain()
        return self._output.told()


async def sent(sending: asyncio.Future[None]) -> None:
    """Until it is written, or the guest is dead."""
    try:
        await asyncio.shield(sending)
    except TransportError:
        pass  # it died meanwhile, and `next` will tell
