"""Standard input as lines, read by a thread that nobody waits for: a read that blocks cannot be cancelled, and Ctrl-C
would be heard at the client's next word only."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Self

_CHUNK = 1 << 16
_MOST_WAITING = 100
"""Lines read ahead; more of them wait in the pipe."""


class InputLines:
    """What the client writes, line by line. While it is open, descriptor 0 is the null device for everybody else."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._room = threading.Semaphore(_MOST_WAITING)
        self._fd = os.dup(0)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        threading.Thread(target=self._read, name="standard input", daemon=True).start()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        self._room.release()
        if line is None:
            raise StopAsyncIteration
        return line

    def close(self) -> None:
        """Give descriptor 0 back; the thread ends with its process, or with the client's next word."""
        os.dup2(self._fd, 0)

    def _read(self) -> None:
        rest = bytearray()
        while chunk := self._chunk():
            rest += chunk
            if b"\n" in chunk:
                *lines, rest = rest.split(b"\n")
                for line in lines:
                    self._tell(line.decode(errors="replace"))
        if rest:
            self._tell(rest.decode(errors="replace"))
        self._tell(None)

    def _chunk(self) -> bytes:
        try:
            return os.read(self._fd, _CHUNK)
        except OSError:
            return b""

    def _tell(self, line: str | None) -> None:
        self._room.acquire()
        try:
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
        except RuntimeError:
            pass  # the loop is closed: nobody listens any more
