"""The host's end of a relay: frames over the engine client's stdin and stdout, to and from plain pipes.

An execution reads its guest's channel and output from pipes, as with every other sandbox. What the relay sends is
written into them in the order in which it came; when one is full, nothing more is read until it is not.
"""

from __future__ import annotations

import asyncio
import os
import struct
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from hatchway.transports.stdio import StdinStdoutTransport

CHUNK = 1 << 16
MAX_FRAME = 1 << 20
"""Bytes of one frame: a relay sends much less, and the guest may have become the relay."""
COMPLAINT_BYTES = 16 * 1024
"""Kept of what the client itself writes to stderr."""
HEADER = 5
FINISH_SECONDS = 1.0
"""A pipe that nobody reads any more is given up after this."""

OnFrame = Callable[[bytes, bytes], None]


class Link:
    """Pipes between an engine's client and an execution, on the running loop.

    Args:
        on_frame: Takes every frame that is neither channel nor output. Raises ValueError for one that makes no sense.
        on_broken: Told once that the relay sent what is no frame.
    """

    def __init__(self, on_frame: OnFrame, on_broken: Callable[[], None]) -> None:
        self._on_frame, self._on_broken = on_frame, on_broken
        self._loop = asyncio.get_running_loop()
        self._all: set[int] = set()
        self.client_stdin, self._to_client = self._pipe()
        self._from_client, self.client_stdout = self._pipe()
        self._complaints, self.client_stderr = self._pipe()
        self._from_transport, transport_out = self._pipe()
        transport_in, self._to_transport = self._pipe()
        self.stdout_fd, self._to_stdout = self._pipe()
        self.stderr_fd, self._to_stderr = self._pipe()
        self.transport = StdinStdoutTransport()
        self.transport.adopt(transport_in, transport_out)
        self._all -= {transport_in, transport_out}  # the transport's own from here on
        self._targets = {b"C": self._to_transport, b"O": self._to_stdout, b"E": self._to_stderr}
        self._half = bytearray()
        self._waiting: deque[tuple[int, memoryview]] = deque()
        self._unsent = bytearray()
        self.complaint = b""
        """What the client said for itself."""
        self._ended: asyncio.Future[None] = self._loop.create_future()

    def open(self) -> None:
        """Start carrying, once the client has its ends."""
        for fd in (self.client_stdin, self.client_stdout, self.client_stderr):
            self._close(fd)
        ours = (self._to_client, self._from_client, self._complaints, self._from_transport, *self._targets.values())
        for fd in ours:
            os.set_blocking(fd, False)
        self._loop.add_reader(self._from_client, self._read)
        self._loop.add_reader(self._complaints, self._read_complaint)
        self._loop.add_reader(self._from_transport, self._read_transport)

    def send(self, kind: bytes, body: bytes = b"") -> None:
        """A frame for the relay."""
        self.send_raw(kind + struct.pack(">I", len(body)) + body)

    def send_raw(self, data: bytes) -> None:
        """Bytes for whatever reads the client's stdin; nothing waits for them to be taken."""
        was_empty = not self._unsent
        self._unsent += data
        if was_empty and self._to_client in self._all:
            self._write_client()

    async def finish(self) -> None:
        """The client is dead: hand on what it had written, as far as anybody takes it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FINISH_SECONDS):
                await self._ended
        self._read_complaint()

    def close(self) -> None:
        """Give everything back. Legal twice."""
        self.transport.close()
        for fd in tuple(self._all):
            self._close(fd)

    def _pipe(self) -> tuple[int, int]:
        made = os.pipe()
        self._all.update(made)
        return made

    def _close(self, fd: int) -> None:
        if fd in self._all:
            self._all.discard(fd)
            if not self._loop.is_closed():
                self._loop.remove_reader(fd)
                self._loop.remove_writer(fd)
            os.close(fd)

    def _read(self) -> None:
        """Read once from the relay."""
        try:
            data = os.read(self._from_client, CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        if not data:
            self._end()
            return
        self._half += data
        try:
            self._take_frames()
        except (ValueError, KeyError, TypeError):
            self._half.clear()
            self._end()
            self._on_broken()

    def _end(self) -> None:
        self._close(self._from_client)
        if not self._waiting and not self._ended.done():
            self._ended.set_result(None)

    def _take_frames(self) -> None:
        start = 0
        while len(self._half) - start >= HEADER:
            (size,) = struct.unpack_from(">I", self._half, start + 1)
            if size > MAX_FRAME:
                raise ValueError("a frame is too long")
            end = start + HEADER + size
            if len(self._half) < end:
                break
            kind, body = bytes(self._half[start : start + 1]), bytes(self._half[start + HEADER : end])
            start = end
            if kind in self._targets:
                self._write(self._targets[kind], memoryview(body))
            else:
                self._on_frame(kind, body)
        del self._half[:start]

    def _write(self, fd: int, data: memoryview) -> None:
        if not self._waiting:
            data = data[self._written(fd, data) :]
        if data and fd in self._all:
            self._waiting.append((fd, data))
            if len(self._waiting) == 1:
                self._loop.remove_reader(self._from_client)
                self._loop.add_writer(fd, self._go_on)

    def _go_on(self) -> None:
        """The pipe that was full has room."""
        while self._waiting:
            fd, data = self._waiting.popleft()
            rest = data[self._written(fd, data) :]
            if rest and fd in self._all:
                self._waiting.appendleft((fd, rest))
                self._loop.add_writer(fd, self._go_on)
                return
            self._loop.remove_writer(fd)
        if self._from_client in self._all:
            self._loop.add_reader(self._from_client, self._read)
        else:
            self._end()

    def _written(self, fd: int, data: memoryview) -> int:
        try:
            return os.write(fd, data) if fd in self._all else len(data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            return len(data)  # nobody reads it any more

    def _read_transport(self) -> None:
        try:
            data = os.read(self._from_transport, CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        if not data:
            self._close(self._from_transport)
            return
        self.send(b"C", data)

    def _write_client(self) -> None:
        try:
            with memoryview(self._unsent)[:CHUNK] as part:
                written = os.write(self._to_client, part)
            del self._unsent[:written]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self._unsent.clear()  # the client is dead, which its end will tell
            self._close(self._to_client)
            return
        if self._unsent:
            self._loop.remove_reader(self._from_transport)
            self._loop.add_writer(self._to_client, self._write_client)
        else:
            self._loop.remove_writer(self._to_client)
            if self._from_transport in self._all:
                self._loop.add_reader(self._from_transport, self._read_transport)

    def _read_complaint(self) -> None:
        while self._complaints in self._all:
            try:
                data = os.read(self._complaints, CHUNK)
            except (BlockingIOError, InterruptedError):
                return
            if not data:
                self._close(self._complaints)
                return
            self.complaint = (self.complaint + data)[-COMPLAINT_BYTES:]
