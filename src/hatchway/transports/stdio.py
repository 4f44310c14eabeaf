"""Calls over a pair of pipes: the guest writes each one as a line and reads its answer as a line.

The channel is its own: what the code prints never mixes with it. For code that runs on this machine.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from pathlib import Path
from typing import Any

from hatchway.core.calls import as_signature, pending_id
from hatchway.core.errors import TransportError
from hatchway.core.limits import Limits
from hatchway.core.sandbox import Functions
from hatchway.core.transport import CallbackTransport, Idle, Received, TransportConfig
from hatchway.transports import messages
from hatchway.transports.guest.wakeup import Wakeup
from hatchway.transports.guest_link import GuestLink, Listener, Said

GUEST = Path(__file__).parent / "guest"
"""The files that run inside; standard library only."""
CHANNEL_VARIABLE = "HATCHWAY_CHANNEL"
"""Where a guest that is started by hand finds its descriptors, as `"read,write"`."""
MAX_UNREAD = 256
"""Messages kept for a host that does not ask; the guest then blocks."""


class StdinStdoutTransport(GuestLink, CallbackTransport):
    """A channel over two pipes for one execution at a time.

    Args:
        value_bytes: Bytes one value may take on the wire, in both directions.
    """

    def __init__(self, *, value_bytes: int = Limits().value_bytes) -> None:
        super().__init__(value_bytes, self._queue)
        self.guest_fds: tuple[int, int] | None = None
        """The guest's descriptors after `start`: hand them on with `pass_fds`, then call `release_guest_fds`."""
        self._unread: deque[Said] = deque()
        self._came: Wakeup | None = None
        self._claim: int | None = None
        self._is_paused = False

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

    def listen(self, listener: Listener | None) -> None:
        """Read on the running loop and hand everything to `listener` at once; None queues it for `receive`."""
        self._came = Wakeup(asyncio.get_running_loop())
        self.listen_by(listener or self._queue)

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

    def _forget_calls(self) -> None:
        super()._forget_calls()
        self._claim = None

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
        return pending_id(call_id, pending)


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
