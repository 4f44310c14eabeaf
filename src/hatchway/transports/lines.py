"""Lines over two file descriptors on an event loop: read as they come, written without ever blocking the loop."""

from __future__ import annotations

import asyncio
import os
import select
import time
from collections.abc import Sized
from typing import Protocol

from hatchway.core.errors import TransportError

SMALL, LARGE = 4 * 1024, 64 * 1024
"""Bytes to ask for in one read: a large buffer costs more than a whole call, so only when the last read was full."""


TURN = 0.001
"""Seconds of early reads in a row before the loop has its turn."""
PATIENCE, LONGEST_PATIENCE = 16, 1024
"""Reads left to the loop after one that came too early; twice as many each time it happens again."""
GLANCE, SOON = 6, 0.0005
"""Milliseconds an early read stands by at most, while this process reads no other channel: a turn of the event loop
costs more than most answers take. Anything else the loop waits for ends it as well. A time below the kernel's tick, of
4 ms, makes it set a timer for each call, which costs a virtual machine a fifth of the call. Seconds after which what
did come was not worth it."""
_reading = 0  # channels that are being read
_OPENING = ord("{")
"""What every message begins with."""


class ChannelLost(TransportError):
    """The other side is gone, in the middle of a message or with one unread: nobody broke a rule."""


class LineSink(Protocol):
    """Who takes what is read. Called on the loop; nothing comes after `on_end`."""

    def on_lines(self, lines: list[bytes]) -> None:
        """Whole lines, without their newlines."""
        ...

    def on_end(self, problem: TransportError | EOFError) -> None:
        """The other side closed its end, or broke the framing."""
        ...


class LineChannel:
    """Newline-framed bytes. The descriptors are owned: `close` gives them back.

    Args:
        read_fd: Lines come from here.
        write_fd: Lines go here.
        max_line: A longer line ends the channel; at least 64 KiB.
    """

    def __init__(self, read_fd: int, write_fd: int, *, max_line: int) -> None:
        self._read_fd, self._write_fd = read_fd, write_fd
        self.max_line = max_line
        """Bytes a line may have; may be changed between lines."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sink: LineSink | None = None
        self._half: list[bytes] = []
        self._half_bytes = 0
        self._chunk = SMALL
        self._hope, self._patience = 0, PATIENCE
        self._since = 0.0
        self._poll: select.poll | None = None
        self._ready: Sized = ()
        self._is_reading = False
        self._unsent = bytearray()
        self._sent: asyncio.Future[None] | None = None
        for fd in {read_fd, write_fd}:
            os.set_blocking(fd, False)

    def open(self, sink: LineSink) -> None:
        """Start reading on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._sink = sink
        self._ready = getattr(self._loop, "_ready", ())
        self._poll = select.poll()
        self._poll.register(_watched(self._loop, self._read_fd), select.POLLIN)
        self.resume()

    def pause(self) -> None:
        """Leave further bytes in the pipe; the other side blocks once it is full."""
        global _reading
        if self._is_reading and self._loop is not None:
            self._is_reading = False
            _reading -= 1
            self._loop.remove_reader(self._read_fd)

    def resume(self) -> None:
        """Read again."""
        global _reading
        if not self._is_reading and self._loop is not None and self._sink is not None:
            self._is_reading = True
            _reading += 1
            self._loop.add_reader(self._read_fd, self._read)

    def detach(self) -> None:
        """Stop reading and forget the loop; the channel can be opened again on another."""
        self.pause()
        if self._loop is not None and self._unsent:
            self._loop.remove_writer(self._write_fd)
        self._loop = self._sink = None

    def read_available(self) -> None:
        """Take everything that has arrived, without waiting for the loop to notice."""
        while self._sink is not None and self._read():
            pass

    def read_early(self) -> bool:
        """Take what has arrived, if it is worth a look; whether anything had.

        On a busy machine the other side answers before the write that woke it returns, and a turn of the event loop
        costs as much as the whole answer. Where that does not come true it is rarely tried, and after `TURN` the loop
        has its turn.
        """
        self._hope += 1
        if self._hope > 0 and self._is_reading and not self._ready:
            now = time.monotonic()
            self._since = self._since or now
            if now - self._since < TURN:
                if (_reading > 1 or self._stands_by(now)) and self._read():
                    return True
                self._lose_hope()
        self._since = 0.0  # whoever asked now waits for the loop
        return False

    def _stands_by(self, started: float) -> bool:
        """Whether something is there to be read, or comes at once."""
        has_come = self._poll is not None and bool(self._poll.poll(GLANCE))
        if time.monotonic() - started > SOON:
            self._lose_hope()
        elif self._patience > PATIENCE:
            self._patience //= 2
        return has_come

    def _lose_hope(self) -> None:
        if self._hope > 0:
            self._hope = -self._patience
            self._patience = min(2 * self._patience, LONGEST_PATIENCE)

    def send(self, data: bytes) -> asyncio.Future[None] | None:
        """Write whole lines; None when all is written, else a future that is done when it is.

        Raises:
            TransportError: The other side is gone.
        """
        if not self._unsent:
            try:
                written = os.write(self._write_fd, data)
            except (BlockingIOError, InterruptedError):
                written = 0
            except OSError as e:
                raise _broken(e) from None
            if written == len(data):
                return None
            data = data[written:]
            loop = asyncio.get_running_loop()
            self._sent = loop.create_future()
            loop.add_writer(self._write_fd, self._on_writable)
        self._unsent += data
        return self._sent

    def close(self) -> None:
        """Give both descriptors back. Legal twice."""
        self.detach()
        self._settle(TransportError("the channel was closed"))
        for fd in {self._read_fd, self._write_fd} - {-1}:
            os.close(fd)
        self._read_fd = self._write_fd = -1

    def _read(self) -> bool:
        """Read once; whether there was anything, if only the end."""
        try:
            data = os.read(self._read_fd, self._chunk)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as e:
            self._end(ChannelLost(_broken(e).message))
            return True
        if not data:
            self._end(ChannelLost("the channel ended inside a message") if self._half else EOFError("it was closed"))
            return True
        self._chunk = LARGE if len(data) == self._chunk else SMALL
        lines = data.split(b"\n")
        rest = lines.pop()
        if rest or self._half:
            self._join(lines, rest)
        if lines and self._sink is not None:
            self._sink.on_lines(lines)
        return True

    def _join(self, lines: list[bytes], rest: bytes) -> None:
        """Complete the line that was begun before, and keep the one that is begun now."""
        if lines:
            lines[0] = b"".join([*self._half, lines[0]])
            size, self._half, self._half_bytes = len(lines[0]), [], 0
        else:
            size = self._half_bytes + len(rest)
        if rest:
            if not self._half and rest[0] != _OPENING:  # not worth waiting for its end
                lines.clear()
                self._end(TransportError("a message is not an object"))
                return
            self._half.append(rest)
            self._half_bytes += len(rest)
        if size > self.max_line:  # no line inside one read is: `max_line` is larger than that
            lines.clear()
            self._half = []
            self._end(TransportError(f"a message is longer than {self.max_line} bytes"))

    def _end(self, problem: TransportError | EOFError) -> None:
        self.pause()
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.on_end(problem)

    def _on_writable(self) -> None:
        try:
            with memoryview(self._unsent)[:LARGE] as part:
                written = os.write(self._write_fd, part)
            del self._unsent[:written]
        except (BlockingIOError, InterruptedError):
            return
        except OSError as e:
            self._settle(_broken(e))
        else:
            if not self._unsent:
                self._settle(None)

    def _settle(self, problem: TransportError | None) -> None:
        if self._sent is None:
            return
        if self._write_fd >= 0:
            self._sent.get_loop().remove_writer(self._write_fd)
        self._unsent.clear()
        sent, self._sent = self._sent, None
        if not sent.done():
            if problem is None:
                sent.set_result(None)
            else:
                sent.set_exception(problem)
                sent.exception()  # whoever waited may be gone; that is no error to log


def _watched(loop: asyncio.AbstractEventLoop, read_fd: int) -> int:
    """What becomes readable when the loop has something to do; the channel alone where a loop does not show that."""
    fileno = getattr(getattr(loop, "_selector", None), "fileno", None)
    return read_fd if fileno is None else int(fileno())


def _broken(error: OSError) -> TransportError:
    return TransportError(f"the channel broke: {os.strerror(error.errno or 0)}")
