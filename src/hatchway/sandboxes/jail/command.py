"""A program behind the wall, as whoever started it sees it: streams, signals, an exit code."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, Protocol

from hatchway.core.errors import SandboxCrashed
from hatchway.core.limits import Limits
from hatchway.core.results import Tier
from hatchway.sandboxes.guest_process import Death

Stream = Literal["pipe", "null"] | int
"""A new pipe, nothing, or a descriptor of the caller's, which stays its own."""
END_SECONDS = 1.0
"""How long the host reads on after the program's end, should somebody else hold its pipes."""


class CommandBody(Protocol):
    """The process itself, in whichever tier."""

    def watch(self, limits: Limits, on_death: Callable[[Death], None]) -> None:
        """As `GuestProcess.watch`."""
        ...

    def kill(self) -> None:
        """Kill it with all its descendants. Legal twice."""
        ...

    def send_signal(self, number: int) -> None:
        """Send a signal to the program alone; nothing happens when it is dead."""
        ...

    def cpu_seconds(self) -> float:
        """As `GuestProcess.cpu_seconds`."""
        ...


class Pipes:
    """The ends of a program's three streams; those asked for as `"pipe"` become asyncio streams."""

    def __init__(self, stdin: Stream, stdout: Stream, stderr: Stream) -> None:
        self._ours: list[int | None] = []
        self.theirs: list[int] = []
        """Standard input, output and error, for the program; whoever takes them closes them."""
        try:
            for number, wanted in enumerate((stdin, stdout, stderr)):
                ours, theirs = _ends(wanted, is_input=number == 0)
                self._ours.append(ours)
                self.theirs.append(theirs)
        except BaseException:
            self.close()
            raise

    async def connected(self) -> tuple[asyncio.StreamWriter | None, list[asyncio.StreamReader | None]]:
        """The writer of its input, the readers of its output and error."""
        stdin, *outputs = self._ours
        self._ours = []
        readers = [None if fd is None else await _reader(fd) for fd in outputs]
        return (None if stdin is None else await _writer(stdin)), readers

    def close(self) -> None:
        """Give up what nobody took."""
        for fd in (*self._ours, *self.theirs):
            if fd is not None:
                with suppress(OSError):
                    os.close(fd)
        self._ours, self.theirs = [], []


class JailedCommand:
    """A running program. Killed with everything it started when `kill` says so, a limit is over or its jail closes."""

    def __init__(self, body: CommandBody, limits: Limits, tier: Tier) -> None:
        self.tier: Tier = tier
        """The wall that holds it."""
        self.stdin: asyncio.StreamWriter | None = None
        """Its standard input, when asked for as a pipe."""
        self.stdout: asyncio.StreamReader | None = None
        """Its standard output, when asked for as a pipe."""
        self.stderr: asyncio.StreamReader | None = None
        """Its standard error, when asked for as a pipe."""
        self.limit = ""
        """The field of `Limits` it was killed for; empty while it runs, or when it ended by itself."""
        self._body, self._limits = body, limits
        self._death: asyncio.Future[Death] = asyncio.get_running_loop().create_future()
        self._timer: asyncio.TimerHandle | None = None
        body.watch(limits, self._on_death)
        if limits.wall_seconds < float("inf"):
            self._timer = asyncio.get_running_loop().call_later(limits.wall_seconds, self._on_time_over)

    @property
    def returncode(self) -> int | None:
        """Its exit code; the negative number of the signal that killed it; None while it runs."""
        if not self._death.done() or self._death.result().is_crash:
            return None
        death = self._death.result()
        if death.exit_code is not None and not self.limit:
            return death.exit_code
        return -signal.Signals[death.signal or "SIGKILL"].value

    async def wait(self) -> int:
        """Its exit code, once it and everything it started are dead.

        Raises:
            SandboxCrashed: The wall's own process died.
        """
        death = await asyncio.shield(self._death)
        if death.is_crash:
            raise SandboxCrashed("the process that supervises the command died", hint="start it again")
        assert self.returncode is not None
        return self.returncode

    async def communicate(self, data: bytes = b"") -> tuple[bytes, bytes]:
        """Write `data` to its input, read both outputs to their end, wait; for programs that end by themselves."""
        reading = [asyncio.ensure_future(r.read()) for r in (self.stdout, self.stderr) if r is not None]
        if self.stdin is not None:
            with suppress(ConnectionError):
                self.stdin.write(data)
                await self.stdin.drain()
            self.stdin.close()
        await self.wait()
        await asyncio.wait(reading, timeout=END_SECONDS) if reading else None
        read = iter([task.result() if task.done() else b"" for task in reading])
        return (next(read) if self.stdout else b""), (next(read) if self.stderr else b"")

    def send_signal(self, number: int) -> None:
        """Send a signal to the program; nothing happens when it is dead."""
        self._body.send_signal(number)

    def terminate(self) -> None:
        """SIGTERM: it may tidy up."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it with everything it started, whatever it does about signals. Legal twice."""
        self._body.kill()

    async def aclose(self) -> None:
        """Kill it, wait, and close its streams."""
        self.kill()
        await asyncio.shield(self._death)
        if self.stdin is not None:
            self.stdin.close()

    def _on_time_over(self) -> None:
        self.limit = "wall_seconds"
        self._body.kill()

    def _on_death(self, death: Death) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.limit = self.limit or death.limit or ("file_bytes" if death.signal == "SIGXFSZ" else "")
        if not self._death.done():
            self._death.set_result(death)


def _ends(wanted: Stream, *, is_input: bool) -> tuple[int | None, int]:
    if wanted == "null":
        return None, os.open(os.devnull, os.O_RDONLY if is_input else os.O_WRONLY)
    if wanted != "pipe":
        return None, os.dup(wanted)
    read_end, write_end = os.pipe()
    return (write_end, read_end) if is_input else (read_end, write_end)


async def _reader(fd: int) -> asyncio.StreamReader:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader, loop=loop), os.fdopen(fd, "rb", 0))
    return reader


async def _writer(fd: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.streams.FlowControlMixin(loop=loop),  # pyright: ignore
        os.fdopen(fd, "wb", 0),
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)  # pyright: ignore
