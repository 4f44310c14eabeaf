"""What the code printed: kept up to the limit, and streamed to whoever listens."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Literal

from hatchway.core.output import OutputBuffer
from hatchway.core.sandbox import OnOutput

Stream = Literal["stdout", "stderr"]


class Printed:
    """Monty's print sink for one action. It is called on Monty's thread, one call at a time.

    Args:
        limit: Bytes to keep of each stream. Of a flood so many characters are streamed as they come, and its end last.
        on_output: Called on the event loop.
        stdout: What was printed before a dump; kept, not streamed again.
        stderr: Likewise.
    """

    def __init__(self, limit: int, on_output: OnOutput | None, *, stdout: str = "", stderr: str = "") -> None:
        self._kept: dict[Stream, OutputBuffer] = {"stdout": OutputBuffer(limit), "stderr": OutputBuffer(limit)}
        self._kept["stdout"].append(stdout)
        self._kept["stderr"].append(stderr)
        self._unsent: dict[Stream, int] = {"stdout": limit, "stderr": limit}
        self._unstreamed: dict[Stream, int] = {"stdout": 0, "stderr": 0}
        self._on_output = on_output
        self._loop = asyncio.get_running_loop()
        self._unheard: deque[tuple[Stream, str]] = deque()

    @property
    def stdout(self) -> str:
        """What is kept of stdout."""
        return self._kept["stdout"].text()

    @property
    def stderr(self) -> str:
        """What is kept of stderr."""
        return self._kept["stderr"].text()

    def __call__(self, stream: Stream, text: str) -> None:
        """Take in what the code wrote."""
        self._kept[stream].append(text)
        room = self._unsent[stream]
        if self._on_output is None:
            return
        self._unstreamed[stream] += max(0, len(text) - room)
        if room <= 0:  # a flood would only pile up on the loop
            return
        self._unsent[stream] = max(0, room - len(text))
        self._unheard.append((stream, text[:room]))
        try:
            self._loop.call_soon_threadsafe(self.stream)
        except RuntimeError:
            self._on_output = None  # the loop is closed: nobody listens any more

    def finish(self) -> None:
        """On the loop, when the code has ended: hand on the rest, of a flood what is kept of its end."""
        for stream, count in self._unstreamed.items():
            tail = self._kept[stream].tail(count)
            cut = count - len(tail)
            if count:
                self._unheard.append((stream, f"\n… {cut} characters cut …\n{tail}" if cut else tail))
        self.stream()

    def stream(self) -> None:
        """On the loop: hand on what was written so far. A call made after it comes after it."""
        while self._unheard and self._on_output is not None:
            try:
                self._on_output(*self._unheard.popleft())
            except Exception as e:
                self._on_output = None  # the caller's mistake must not stop the execution
                self._loop.call_exception_handler({"message": "on_output failed", "exception": e})
