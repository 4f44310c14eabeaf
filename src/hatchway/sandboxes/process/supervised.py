"""A guest below its supervisor, as the host sees it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable

from hatchway.core.limits import Limits
from hatchway.sandboxes.guest_process import Death
from hatchway.sandboxes.process.inside import tree
from hatchway.sandboxes.process.spawner import Spawner
from hatchway.transports.stdio import StdinStdoutTransport

DEAF_SECONDS = 0.03
"""A supervisor that has not killed its guest after this was stopped or killed itself: the spawner takes over."""


class SupervisedProcess:
    """A guest's process: killed with everything that came of it, also if it stops or kills its supervisor.

    Made on any loop or none; it lives on one loop from its first `watch` on.
    """

    def __init__(self, spawner: Spawner) -> None:
        self._spawner = spawner
        self._number = 0
        channel_in, their_out = os.pipe()
        their_in, channel_out = os.pipe()
        self.stdout_fd, their_stdout = os.pipe()
        self.stderr_fd, their_stderr = os.pipe()
        self._control, self._their_control = socket.socketpair()
        self._control.setblocking(False)
        self._theirs = [their_in, their_out, their_stdout, their_stderr]
        self.transport = StdinStdoutTransport()
        self.transport.adopt(channel_in, channel_out)
        self._half = b""
        self._supervisor = self._guest = 0
        self._death: Death | None = None
        self._on_death: Callable[[Death], None] | None = None
        self._gone: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_killed = self._is_closed = False

    @property
    def is_dead(self) -> bool:
        """Whether it takes no more actions."""
        return self._death is not None or self._is_killed

    async def start(self, cwd: str, env: dict[str, str]) -> None:
        """Ask the spawner for the process. It is usable at once: what is sent meanwhile waits in the pipes.

        Raises:
            OSError: The spawner is gone.
        """
        try:
            self._number = await self._spawner.spawn(cwd, env, [*self._theirs, self._their_control.fileno()])
        except BaseException:
            self.close()
            raise
        finally:
            self._close_theirs()

    def watch(self, limits: Limits, on_death: Callable[[Death], None]) -> None:
        """As `GuestProcess` says."""
        self._on_death = on_death
        self._attach()
        self._order(b"watch %d %d\n" % (limits.processes, limits.memory_bytes))

    def kill(self) -> None:
        """As `GuestProcess` says."""
        if self._is_killed or self._death is not None:
            return
        self._is_killed = True
        self._attach()
        self._order(b"kill\n")
        if self._loop is not None:
            self._loop.call_later(DEAF_SECONDS, self._kill_by_spawner)

    async def wait_gone(self) -> None:
        """Until it is dead and its folder is removed."""
        if self._gone is not None:
            await asyncio.shield(self._gone)

    def cpu_seconds(self) -> float:
        """As `GuestProcess` says."""
        above = tree.stat(self._supervisor) if self._supervisor else None
        if above is None:
            return 0.0
        below = tree.descendants(self._supervisor).values()
        return (above.reaped_ticks + sum(s.own_ticks + s.reaped_ticks for s in below)) / tree.TICKS

    def peak_memory(self) -> int:
        """As `GuestProcess` says."""
        try:
            with open(f"/proc/{self._guest}/status", "rb") as f:
                return next(int(line.split()[1]) * 1024 for line in f if line.startswith(b"VmHWM:"))
        except (OSError, StopIteration):
            return 0

    def close(self) -> None:
        """Give the descriptors back; the supervisor then kills what still runs. Legal twice."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._loop is not None:
            self._loop.remove_reader(self._control.fileno())
        self._control.close()
        self._close_theirs()
        self.transport.close()
        os.close(self.stdout_fd)
        os.close(self.stderr_fd)
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)

    def _attach(self) -> None:
        if self._loop is None and not self._is_closed:
            self._loop = asyncio.get_running_loop()
            self._gone = self._loop.create_future()
            self._loop.add_reader(self._control.fileno(), self._on_told)

    def _order(self, line: bytes) -> None:
        try:
            self._control.send(line)
        except OSError:
            pass  # it is dead, and its last words are on the way

    def _on_told(self) -> None:
        try:
            data = self._control.recv(4096)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        *lines, self._half = (self._half + data).split(b"\n")
        for line in lines:
            match line.split():
                case [b"started", supervisor, guest]:
                    self._supervisor, self._guest = int(supervisor), int(guest)
                case [b"dead", status, limit]:
                    self._die(_death(int(status), limit.decode("ascii")))
                case _:
                    self._die(Death(is_crash=True))
        if not data:
            self._die(Death(is_crash=True))
            self.close()

    def _die(self, death: Death) -> None:
        if self._death is None:
            self._death = death
            if self._on_death is not None:
                self._on_death(death)

    def _kill_by_spawner(self) -> None:
        if self._death is None and not self._is_closed:
            self._spawner.kill_supervisor(self._number)

    def _close_theirs(self) -> None:
        for fd in self._theirs:
            os.close(fd)
        self._theirs = []
        self._their_control.close()


def _death(status: int, limit: str) -> Death:
    limit = "" if limit == "-" else limit
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        names = {s.value: s.name for s in signal.Signals}
        return Death(signal=names.get(number, f"number {number}"), limit=limit)
    return Death(exit_code=os.WEXITSTATUS(status), limit=limit)
