"""The host's end of a guest's channel: orders and answers go out, checked messages come in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hatchway.core.calls import FunctionCall
from hatchway.core.errors import TransportError
from hatchway.core.limits import Limits
from hatchway.core.recording import RecordedAnswer
from hatchway.core.sandbox import Functions
from hatchway.core.transport import Completed, Displayed, Failed, Idle, TransportConfig
from hatchway.transports import messages
from hatchway.transports.lines import LineChannel
from hatchway.transports.messages import Again
from hatchway.transports.transcript import Transcript

SLACK = 64 * 1024
"""Bytes a message may have around its value."""
MOST_PENDING = 4
"""How often `value_bytes` the unanswered calls may take together: a guest must not fill the host's memory."""

Said = FunctionCall | Displayed | Completed | Failed | EOFError | TransportError
"""What comes out of the channel; an error is the last thing."""
Listener = Callable[[list[Said], int | None], None]
"""Takes what was read at once, in order, and how many answers the guest had if it then claims to stand still."""


class GuestLink:
    """A channel to a guest over two descriptors, for one execution at a time.

    Args:
        value_bytes: Bytes one value may take on the wire, in both directions.
        listener: Takes what the guest says.
    """

    def __init__(self, value_bytes: int, listener: Listener) -> None:
        self.transcript = Transcript()
        """What was said in this execution."""
        self._value_bytes = value_bytes
        self._channel: LineChannel | None = None
        self._listener = listener
        self._pending_bytes = self._answered = 0
        self._is_ready = False

    def adopt(self, read_fd: int, write_fd: int) -> None:
        """Speak over descriptors whose other ends a guest has; they are owned from here on."""
        self._channel = LineChannel(read_fd, write_fd, max_line=self._value_bytes + SLACK)

    def listen_by(self, listener: Listener) -> None:
        """Read on the running loop and hand everything to `listener` at once."""
        self._listener = listener
        self._opened().open(self)

    def detach(self) -> None:
        """Stop reading between two actions; `listen` goes on, also on another loop."""
        if self._channel is not None:
            self._channel.detach()

    async def execute(
        self,
        code: str,
        functions: Functions,
        inputs: Mapping[str, Any],
        limits: Limits,
        *,
        is_session: bool,
        again: Again | None = None,
        config: TransportConfig | None = None,
    ) -> asyncio.Future[None] | None:
        """Order the guest to run an action; ids and answers count from nothing again.

        None when all is written, else a future that is done when it is.

        Args:
            code: The action.
            functions: What it may call.
            inputs: Values bound as global names.
            limits: What it may take.
            is_session: The guest lives on after it.
            again: What its randomness and time are drawn from.
            config: Another transport's, if calls go by that one.

        Raises:
            ValueNotPortable: An input cannot cross.
            TransportError: The channel broke.
        """
        order = messages.execute(code, functions, inputs, limits, is_session=is_session, again=again, config=config)
        self._forget_calls()
        self.transcript.begin(order)
        self._value_bytes = limits.value_bytes
        self._opened().max_line = limits.value_bytes + SLACK
        return self._opened().send(order)

    def answer(self, value: Any, call_id: str) -> asyncio.Future[None] | None:
        """Answer at once; None when all is written, else a future that is done when it is.

        Raises:
            ValueNotPortable: The value cannot cross; the call stays pending.
            TransportError: The channel broke.
        """
        frame = messages.result(call_id, value, limit=self._value_bytes)
        self._pending_bytes -= self.transcript.answered(call_id, frame)
        self._answered += 1
        return self._opened().send(frame)

    def answer_error(self, error: BaseException, call_id: str) -> asyncio.Future[None] | None:
        """As `answer`, with an error that is raised at the call."""
        frame = messages.error(call_id, error)
        self._pending_bytes -= self.transcript.answered(call_id, frame)
        self._answered += 1
        return self._opened().send(frame)

    def answer_together(self, answers: Sequence[RecordedAnswer]) -> asyncio.Future[None] | None:
        """As `answer`, several that the guest takes in at once."""
        frames = [messages.answer(answer, limit=self._value_bytes) for answer in answers]
        for answer, frame in zip(answers, frames, strict=True):
            self._pending_bytes -= self.transcript.answered(answer.call_id, frame)
        self._answered += len(frames)
        return self._opened().send(messages.answers(frames))

    def on_lines(self, lines: list[bytes]) -> None:
        """Check lines and hand on what they say."""
        batch: list[Said] = []
        claim: int | None = None
        try:
            for line in lines:
                message, claim = messages.parse(line)
                if type(message) is FunctionCall:
                    size = self.transcript.called(message.call_id, line)
                    if not size:
                        raise TransportError(f"the call id {message.call_id} came twice")
                    self._pending_bytes += size
                    if self._pending_bytes > MOST_PENDING * (self._value_bytes + SLACK):
                        raise TransportError("the unanswered calls are too large together")
                    batch.append(message)
                elif isinstance(message, Idle):
                    claim = message.answers
                elif message is None:
                    self._be_ready()
                else:
                    batch.append(message)
        except TransportError as e:
            self._opened().detach()  # a guest that breaks the rules is not read any more
            batch.append(e)
        self._listener(batch, claim)

    def on_end(self, problem: TransportError | EOFError) -> None:
        """The last thing that is handed on."""
        self._listener([problem], None)

    def read_available(self) -> None:
        """Take what has arrived without waiting for the loop to notice."""
        if self._channel is not None:
            self._channel.read_available()

    def read_early(self) -> bool:
        """Take what has arrived, if it is worth a look; whether anything had."""
        channel = self._channel
        return channel is not None and channel.read_early()

    def _forget_calls(self) -> None:
        self.transcript.pending.clear()
        self._pending_bytes = self._answered = 0

    def _be_ready(self) -> None:
        if self._is_ready:
            raise TransportError("the guest is ready twice")
        self._is_ready = True

    def _opened(self) -> LineChannel:
        if self._channel is None:
            raise TransportError("the channel is not open")
        return self._channel
