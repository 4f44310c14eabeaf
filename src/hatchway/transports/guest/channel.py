"""The pipe to the host: one message per line, JSON in ASCII."""

import os
import select

from . import codec

SMALL, LARGE = 1 << 14, 1 << 16  # a large buffer costs more than a whole call: only when the last read was full


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
        """The messages of one read, decoded; none when it ended inside a message. Raises EOFError at the end."""
        data = os.read(self._read_fd, self._chunk)
        self._chunk = LARGE if len(data) == self._chunk else SMALL
        if not data:
            raise EOFError("the host closed the channel")
        if not data.endswith(b"\n") or self._half:
            data = self._whole_lines(data)
        return [codec.loads(line) for line in data.splitlines()]

    def close(self):
        """Give both ends back."""
        os.close(self._read_fd)
        os.close(self._write_fd)

    def _whole_lines(self, data):
        end = data.rfind(b"\n") + 1
        if not end:
            self._half.append(data)
            return b""
        whole = b"".join(self._half) + data[:end]
        self._half = [data[end:]] if end < len(data) else []
        return whole
