"""Calls over a pair of pipes: the guest writes each one as a line and reads its answer as a line.

The channel is its own: what the code prints never mixes with it. For code that runs on this machine.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hatchway.core.calls import FunctionCall, as_signature
from hatchway.core.errors import TransportError
from hatchway.core.limits import Limits
from hatchway.core.recording import RecordedAnswer
from hatchway.core.sandbox import Functions
from hatchway.core.transport import CallbackTransport, Completed, Displayed, Failed, Idle, Received, TransportConfig
from hatchway.transports import messages
from hatchway.transports.guest.wakeup import Wakeup
from hatchway.transports.lines import LineChannel
from hatchway.transports.messages import Again
from hatchway.transports.transcript import Transcript

GUEST = Path(__file__).parent / "guest"
"""The files that run inside; standard library only."""
CHANNEL_VARIABLE = "HATCHWAY_CHANNEL"
"""Where a guest that is started by hand finds its descriptors, as `"read,write"`."""
SLACK = 64 * 1024
"""Bytes a message may have around its value."""
MAX_UNREAD = 256
"""Messages kept for a host that does not ask; the guest then blocks."""

MOST_PENDING = 4
"""How often `value_bytes` the unanswered calls may take together: a guest must not fill the host's memory."""

Said = FunctionCall | Displayed | Completed | Failed | EOFError | TransportError
"""What comes out of the channel; an error is the last thing."""
Listener = Callable[[list[Said], int | None], None]
"""Takes what was read at once, in order, and how many answers the guest had if it then claims to stand still."""


class StdinStdoutTransport(CallbackTransport):
    """A channel over two pipes for one execution at a time.

    Args:
        value_bytes: Bytes one value may take on the wire, in both directions.
    """

    def __init__(self, *, value_bytes: int = Limits().value_bytes) -> None:
        self.guest_fds: tuple[int, int] | None = None
        """The guest's descriptors after `start`: hand them on with `pass_fds`, then call `release_guest_fds`."""
        self.transcript = Transcript()
        """What was said in this execution."""
        self._value_bytes = value_bytes
        self._channel: LineChannel | None = None
        self._listener: Listener = self._queue
        self._unread: deque[Said] = deque()
        self._came: Wakeup | None = None
        self._pending_bytes = self._answered = 0
        self._claim: int | None = None
        self._is_ready = self._is_paused = False

    async def start(self, available_functions: Functions) -> TransportConfig:
        """Open the pipes. The guest needs `guest_fds`, under the numbers they have here.

        Raises:
            TransportError: A channel is open already, or no pipe can be made.
        """
        if self._channel is not None:
            raise TransportError("this transport already serves an execution", hint="use one transport per execution")
        (guest_read, host_write), (host_read, guest_write) = _two_pipes()
        self.guest_fds = guest_read, guest_write
        self._unread.clear()
        self._is_ready = self._is_paused = False
        self._forget_calls()
        self.adopt(host_read, host_write)
        self.listen(None)
        specs = [messages.spec(as_signature(f)) for f in available_functions]
        stub_code = _STUB.format(start=str(GUEST / "__main__.py"), specs=specs, value_bytes=self._value_bytes)
        return TransportConfig(stub_code=stub_code, env_vars={CHANNEL_VARIABLE: f"{guest_read},{guest_write}"})

    def adopt(self, read_fd: int, write_fd: int) -> None:
        """Speak over descriptors whose other ends a guest has; they are owned from here on."""
        self._channel = LineChannel(read_fd, write_fd, max_line=self._value_bytes + SLACK)

    def listen(self, listener: Listener | None) -> None:
        """Read on the running loop and hand everything to `listener` at once; None queues it for `receive`."""
        self._listener = listener or self._queue
        self._came = Wakeup(asyncio.get_running_loop())
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

    async def receive(self) -> Received:
        """As the contract says. Calls come in the order in which the guest made them; stale claims are left out."""
        while not self._unread:
            if self._claim == self._answered:
                self._claim = None
                return Idle(self._answered)
            if self._came is None:
                raise TransportError("the channel is not open")
            if self._came.is_awaited:
                raise RuntimeError("receive() is already being awaited")
            if not self.read_early():
                await self._came
        if self._is_paused and len(self._unread) <= MAX_UNREAD // 2:
            self._is_paused = False
            self._opened().resume()
        said = self._unread[0]
        if isinstance(said, Exception):
            raise said.with_traceback(None)
        return self._unread.popleft()  # pyright: ignore[reportReturnType]  # what is no error was received

    async def send_result(self, value: Any, *, call_id: str | None = None) -> None:
        """As the contract says; also past `value_bytes` a value cannot cross."""
        sending = self.answer(value, self._pending_id(call_id))
        if sending is not None:
            await asyncio.shield(sending)

    async def send_error(self, error: BaseException, *, call_id: str | None = None) -> None:
        """As the contract says."""
        sending = self.answer_error(error, self._pending_id(call_id))
        if sending is not None:
            await asyncio.shield(sending)

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

    async def stop(self) -> None:
        """Close the channel, and the guest's ends if they are still here. Legal twice."""
        self.close()

    def close(self) -> None:
        """As `stop`, at once."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
            self._queue([EOFError("the transport was stopped")], None)  # for whoever waits in `receive`
        self.release_guest_fds()

    def release_guest_fds(self) -> None:
        """Close the guest's ends here, once it has them: only then is its death seen as the end of the channel."""
        fds, self.guest_fds = self.guest_fds, None
        for fd in fds or ():
            os.close(fd)

    def on_lines(self, lines: list[bytes]) -> None:
        """Check lines and hand on what they say."""
        batch: list[Said] = []
        claim: int | None = None
        try:
            for line in lines:
                message, claim = messages.parse(line)
                if isinstance(message, FunctionCall):
                    if not self.transcript.called(message.call_id, line):
                        raise TransportError(f"the call id {message.call_id} came twice")
                    self._count(len(self.transcript.pending[message.call_id]))
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
        self._claim = None

    def _count(self, size: int) -> None:
        self._pending_bytes += size
        if self._pending_bytes > MOST_PENDING * (self._value_bytes + SLACK):
            raise TransportError("the unanswered calls are too large together")

    def _be_ready(self) -> None:
        if self._is_ready:
            raise TransportError("the guest is ready twice")
        self._is_ready = True

    def _queue(self, batch: list[Said], claim: int | None) -> None:
        self._unread += batch
        self._claim = claim
        if len(self._unread) >= MAX_UNREAD and self._channel is not None:
            self._is_paused = True
            self._channel.pause()
        if self._came is not None:
            self._came.wake()

    def _pending_id(self, call_id: str | None) -> str:
        pending = self.transcript.pending
        if call_id is None:
            if len(pending) != 1:
                raise ValueError(f"{len(pending)} calls are pending: say which by call_id")
            return next(iter(pending))
        if call_id not in pending:
            raise ValueError(f"no pending call {call_id!r}")
        return call_id

    def _opened(self) -> LineChannel:
        if self._channel is None:
            raise TransportError("the channel is not open")
        return self._channel


def _two_pipes() -> tuple[tuple[int, int], tuple[int, int]]:
    made: list[tuple[int, int]] = []
    try:
        made += [os.pipe()]
        made += [os.pipe()]
    except OSError as e:
        for fd in sum(made, ()):
            os.close(fd)
        raise TransportError(f"no pipe can be made: {os.strerror(e.errno or 0)}") from None
    return made[0], made[1]


_STUB = """\
import runpy as _hatchway
_hatchway.run_path({start!r})["load"]()
from _hatchway_guest.piped import attach as _hatchway
_hatchway(globals(), {specs!r}, {value_bytes})"""
