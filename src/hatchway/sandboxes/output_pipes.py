"""What the code prints: read from its pipes as it comes, decoded, capped and handed on."""

from __future__ import annotations

import asyncio
import codecs
import os
import select
from typing import Literal

from hatchway.core.output import OutputBuffer
from hatchway.core.sandbox import OnOutput

CHUNK = 256 * 1024
DRAINED_BYTES = 4 * 1024 * 1024
"""Read at once at most, more than two pipes can hold: somebody else may write while the code stands at a call."""


class OutputPipes:
    """Stdout and stderr of one execution. The descriptors stay the caller's.

    Args:
        stdout_fd: The read end of the code's stdout.
        stderr_fd: The read end of the code's stderr.
        limit: Bytes to keep of each.
        on_output: Sees each piece as it comes.
    """

    def __init__(self, stdout_fd: int, stderr_fd: int, *, limit: int, on_output: OnOutput | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._fds, self._limit, self._on_output = (stdout_fd, stderr_fd), limit, on_output
        self._pipes: dict[int, _Pipe] = {}
        self._poll = select.poll()
        self._open: set[int] = set()
        self._is_closed = False

    def open(self) -> None:
        """Start reading."""
        stdout_fd, stderr_fd = self._fds
        self._pipes[stdout_fd] = _Pipe(stdout_fd, "stdout", self._limit, self._on_output)
        self._pipes[stderr_fd] = _Pipe(stderr_fd, "stderr", self._limit, self._on_output)
        for fd, pipe in self._pipes.items():
            os.set_blocking(fd, False)
            self._poll.register(fd, select.POLLIN)
            self._loop.add_reader(fd, self._read, pipe)
        self._open.update(self._pipes)

    def drain(self) -> None:
        """Take everything that was written until now."""
        taken = 0
        while self._open and taken < DRAINED_BYTES and (ready := self._poll.poll(0)):
            for fd, _ in ready:
                taken += self._read(self._pipes[fd])

    def told(self) -> dict[str, int]:
        """Characters of each stream that came so far."""
        return {pipe.name: pipe.told for pipe in self._pipes.values()}

    def close(self) -> tuple[str, str]:
        """Stop reading; the kept text of stdout and stderr."""
        self._is_closed = True
        self._loop.call_soon(self._forget_all)  # whoever waits for the end is told first
        stdout, stderr = (pipe.finish() for pipe in self._pipes.values())
        return stdout, stderr

    def _forget_all(self) -> None:
        for fd in tuple(self._open):
            self._forget(fd)

    def _read(self, pipe: _Pipe) -> int:
        if self._is_closed:
            return 0
        try:
            data = os.read(pipe.fd, CHUNK)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            data = b""
        if not data:
            self._forget(pipe.fd)
        pipe.take(data)
        return len(data)

    def _forget(self, fd: int) -> None:
        self._open.discard(fd)
        self._poll.unregister(fd)
        self._loop.remove_reader(fd)


class _Pipe:
    def __init__(self, fd: int, name: Literal["stdout", "stderr"], limit: int, on_output: OnOutput | None) -> None:
        self.fd = fd
        self.name: Literal["stdout", "stderr"] = name
        self.told = 0
        self._kept = OutputBuffer(limit)
        self._on_output = on_output
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def take(self, data: bytes, *, is_last: bool = False) -> None:
        text = self._decode(data, is_last)
        if not text:
            return
        self.told += len(text)
        self._kept.append(text)
        if self._on_output is not None:
            try:
                self._on_output(self.name, text)
            except Exception as e:
                self._on_output = None  # the caller's mistake must not stop the execution
                asyncio.get_running_loop().call_exception_handler({"message": "on_output failed", "exception": e})

    def finish(self) -> str:
        self.take(b"", is_last=True)
        return self._kept.text()
