"""The pipe to the host: one message per line, JSON in ASCII."""

import os
import select

SMALL, LARGE = 1 << 12, 1 << 16  # a large buffer costs more than a whole call: only when the last read was full


class PipeChannel:
    """Lines over two file descriptors. Any thread may send; one thread at a time may receive."""

    def __init__(self, read_fd, write_fd):
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._half = []
        self._chunk = SMALL
        self._poll = select.poll()
        self._poll.register(read_fd, select.POLLIN)

    def fileno(self):
        """Readable when `receive` has something to read."""
        return self._read_fd

    def send(self, data):
        """Write whole messages; the caller makes sure that no other thread does at the same time."""
        written = os.write(self._write_fd, data)
        while written < len(data):
            data = memoryview(data)[written:]
            written = os.write(self._write_fd, data)

    def is_readable(self, seconds=0.0):
        """Whether bytes are there, waiting up to so many seconds for them."""
        return bool(self._poll.poll(seconds * 1000))

    def receive(self):
        """The lines of one read; none when it ended inside a message. Raises EOFError at the end."""
        data = os.read(self._read_fd, self._chunk)
        if not data:
            raise EOFError("the host closed the channel")
        self._chunk = LARGE if len(data) == self._chunk else SMALL
        lines = data.splitlines(True)
        if self._half or not data.endswith(b"\n"):
            self._join(lines)
        return lines

    def _join(self, lines):
        """Complete the line that was begun before, and keep the one that is begun now."""
        rest = [] if lines[-1].endswith(b"\n") else [lines.pop()]
        if lines:
            lines[0] = b"".join(self._half) + lines[0]
            self._half = rest
        else:
            self._half += rest

    def close(self):
        """Give both ends back."""
        for fd in {self._read_fd, self._write_fd}:  # a socket is both
            os.close(fd)
