"""A process below its supervisor, as the host sees it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hatchway.core.errors import SandboxUnavailable
from hatchway.core.limits import Limits
from hatchway.sandboxes.guest_process import Death
from hatchway.sandboxes.process.inside import tree
from hatchway.sandboxes.process.inside.scratch import remove_tree
from hatchway.sandboxes.process.spawner import Spawner

DEAF_SECONDS, STUCK_SECONDS = 0.03, 1.0
"""A supervisor that has not said after this that it kills, or has not done it: it was stopped, the spawner acts."""


class Supervised:
    """A process below its supervisor: killed with everything that came of it, also if it stops or kills that one.

    Belongs to no event loop until it is watched; a spare one may be made on one loop and used on another.

    Args:
        spawner: Who forks it.
        fds: The four descriptors it is given; they are closed here.

    Raises:
        SandboxUnavailable: There are no descriptors left.
    """

    def __init__(self, spawner: Spawner, fds: Sequence[int]) -> None:
        self.cwd = ""
        """Its folder once it is started; removed when it is dead."""
        self._spawner, self._number = spawner, 0
        self._theirs = list(fds)
        try:
            control, their_control = socket.socketpair()
        except OSError as e:
            self._close_theirs()
            raise no_pipes(e) from None
        control.setblocking(False)
        self._control = control.detach()
        self._theirs.append(their_control.detach())
        self.hash_seed = spawner.python.hash_seed
        """Of its interpreter."""
        self._half = b""
        self._reason = ""
        self._helper: asyncio.TimerHandle | None = None
        self._supervisor = self._guest = 0
        self._death: Death | None = None
        self._on_death: Callable[[Death], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gone: asyncio.Future[None] | None = None
        self._dead: asyncio.Future[None] | None = None
        self._is_killed = self._is_closed = False
        self._cpu_limit = float("inf")

    def __del__(self) -> None:
        if not getattr(self, "_is_closed", True):
            self.close()  # its loop is gone and nobody closed the sandbox

    @property
    def is_dead(self) -> bool:
        """Whether it takes no more actions."""
        return self._death is not None or self._is_killed or self._is_closed

    @property
    def is_closed(self) -> bool:
        """Whether everything of it was given back."""
        return self._is_closed

    @property
    def is_fresh(self) -> bool:
        """Whether it is a spare that can be used."""
        if self._loop is None and not self._is_closed:
            self._on_told()  # nobody listens to a spare
        return not self.is_dead and self._spawner.is_alive

    @property
    def is_stranded(self) -> bool:
        """Whether it belongs to a loop that was closed."""
        return self._loop is not None and self._loop.is_closed()

    async def start(self, cwd: str, env: Mapping[str, str], packages: Sequence[str] = (), **more: Any) -> None:
        """Ask the spawner for the process. It is usable at once: what is sent meanwhile waits in the pipes.

        Args:
            more: What else the spawner is told.

        Raises:
            OSError: The spawner is gone.
        """
        self.cwd = cwd
        try:
            self._number = await self._spawner.spawn(cwd, env, self._theirs, packages, **more)
        except BaseException:
            self.close()
            remove_tree(cwd)
            raise
        self._close_theirs()

    def watch(self, limits: Limits, on_death: Callable[[Death], None]) -> None:
        """As `GuestProcess` says."""
        self._on_death = on_death
        self._attach()
        self._order(b"watch %d %d\n" % (limits.processes, limits.memory_bytes))

    def kill(self) -> None:
        """As `GuestProcess` says."""
        self._kill(DEAF_SECONDS)

    def _kill(self, patience: float) -> None:
        if self.is_dead:
            return
        self._is_killed = True
        self._attach()
        self._order(b"kill\n")
        if self._helper is None:
            self._help_after(patience)

    def has_ended(self) -> bool:
        """As `GuestProcess` says."""
        seen = tree.stat(self._guest) if self._guest else None
        return bool(self._guest) and (seen is None or seen.is_zombie)

    async def wait_gone(self) -> None:
        """Until it is dead and its folder is removed."""
        if self.is_stranded:
            self.close()
        elif self._gone is not None:
            await asyncio.shield(self._gone)

    async def wait_dead(self) -> None:
        """Until everything of it is dead; its folder may still be there."""
        while self._death is None and not self._is_closed:
            self._attach()
            self._dead = self._dead or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._dead)

    def cpu_seconds(self) -> float:
        """As `GuestProcess` says."""
        above = tree.stat(self._supervisor) if self._supervisor else None
        if above is None:
            return 0.0
        below = tree.descendants(self._supervisor).values()
        return (above.reaped_ticks + sum(s.own_ticks + s.reaped_ticks for s in below)) / tree.TICKS

    def processes(self) -> list[int]:
        """The pids of everything that came of it and is alive."""
        return list(tree.descendants(self._supervisor)) if self._supervisor else []

    def peak_memory(self) -> int:
        """As `GuestProcess` says."""
        return tree.peak_bytes(self._guest) if self._guest else 0

    def close(self) -> None:
        """Give the descriptors back; the supervisor then kills what still runs. Legal twice."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._loop is not None:
            self._loop.remove_reader(self._control)
        self._close_theirs()
        os.close(self._control)
        if self._loop is None and self.cwd:
            remove_tree(self.cwd)  # a spare: its supervisor does that too, unless the spawner died before
        if self._gone is not None and not self._gone.done() and not self.is_stranded:
            self._gone.set_result(None)

    def _attach(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._gone = self._loop.create_future()
            self._loop.add_reader(self._control, self._on_told)
        return self._loop

    def _order(self, line: bytes) -> None:
        try:
            os.write(self._control, line)
        except OSError:
            pass  # it is dead, and its last words are on the way

    def _on_told(self) -> None:
        try:
            data = os.read(self._control, 4096)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        *lines, self._half = (self._half + data).split(b"\n")
        for line in lines:
            self._on_line(line)
        if not data:
            if self._death is None:
                self._spawner.lose()
                remove_tree(self.cwd)  # nobody is left who would
                self._die(Death(is_crash=True))
            self.close()

    def _on_line(self, line: bytes) -> None:
        match line.split():
            case [b"started", supervisor, guest]:
                self._supervisor, self._guest = int(supervisor), int(guest)
            case [b"killing", reason]:
                self._reason = "" if reason == b"-" else reason.decode("ascii")
                self._help_after(STUCK_SECONDS)
            case [b"dead", status, milliseconds]:
                death = death_of(int(status), self._reason)
                if death.is_crash:
                    self._spawner.lose()
                is_over = death.signal == "SIGXCPU" or (
                    death.signal == "SIGKILL" and int(milliseconds) > self._cpu_limit * 1000
                )
                self._die(replace(death, limit="cpu_seconds") if is_over and not death.limit else death)
            case _:
                self._die(Death(is_crash=True))

    def _die(self, death: Death) -> None:
        if self._death is None:
            self._death = death
            if self._helper is not None:
                self._helper.cancel()
            if self._on_death is not None:
                self._on_death(death)
            if self._dead is not None and not self._dead.done():
                self._dead.set_result(None)

    def _help_after(self, seconds: float) -> None:
        if self._helper is not None:
            self._helper.cancel()
        self._helper = self._attach().call_later(seconds, self._kill_by_spawner)

    def _kill_by_spawner(self) -> None:
        if self._death is None and not self._is_closed:
            self._spawner.kill_supervisor(self._number)

    def _close_theirs(self) -> None:
        while self._theirs:
            os.close(self._theirs.pop())


def no_pipes(e: OSError) -> SandboxUnavailable:
    """What it means that there are no descriptors left."""
    reason = os.strerror(e.errno or 0)
    return SandboxUnavailable(f"no pipes for another process: {reason}", hint="raise the limit: ulimit -n")


def death_of(status: int, reason: str) -> Death:
    """What a supervisor's last words mean: a wait status, and the limit or the reason it killed for."""
    if reason == "orphaned":
        return Death(is_crash=True)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        names = {s.value: s.name for s in signal.Signals}
        return Death(signal=names.get(number, f"number {number}"), limit=reason)
    return Death(exit_code=os.WEXITSTATUS(status), limit=reason)
