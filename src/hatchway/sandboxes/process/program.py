"""Other programs below a supervisor: held to limits, killed with everything that came of them. UNSEALED."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence

from hatchway.core.errors import SandboxCrashed, SandboxUnavailable
from hatchway.core.limits import Limits
from hatchway.sandboxes.guest_process import Death
from hatchway.sandboxes.process.python import Python
from hatchway.sandboxes.process.spawner import Spawner, send_with_fds
from hatchway.sandboxes.process.spawners import Spawners
from hatchway.sandboxes.process.supervised import DEAF_SECONDS, STUCK_SECONDS, death_of

MOST_IDLE = 4
"""Supervisors kept for the next program."""
DYING_SECONDS = 0.05
"""A spawner that was killed has closed its socket some time before it is dead and another one is made."""


class ProgramSupervisor:
    """A process that runs one program at a time. Between two programs nothing lives below it, so it is used again."""

    def __init__(self, spawner: Spawner) -> None:
        self._spawner, self._number = spawner, 0
        self._socket, self._theirs = socket.socketpair()
        self._socket.setblocking(False)
        self._half = b""
        self._died: asyncio.Future[Death] | None = None
        self._reason = ""
        self._helper: asyncio.TimerHandle | None = None
        self._is_reusable = True

    @property
    def is_usable(self) -> bool:
        """Whether it can run another program."""
        return self._is_reusable and self._spawner.is_alive

    async def open(self) -> None:
        """Have it made.

        Raises:
            OSError: The spawner is gone.
        """
        with self._theirs:
            self._number = await self._spawner.spawn_supervisor(self._theirs.fileno())

    async def start(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], fds: Sequence[int], limits: Limits
    ) -> asyncio.Future[Death]:
        """Start a program with these descriptors as stdin, stdout and stderr; they stay the caller's.

        Returns:
            How it died, once everything that came of it is dead. It raises SandboxUnavailable when the program
            could not be started.

        Raises:
            OSError: The supervisor is gone.
        """
        loop = asyncio.get_running_loop()
        self._died, self._reason, self._is_reusable = loop.create_future(), "", False
        order = {"argv": list(argv), "cwd": cwd, "env": dict(env), "rlimits": _rlimits(limits)}
        await send_with_fds(self._socket, order, fds)
        self._order(b"watch %d %d\n" % (limits.processes, limits.memory_bytes))
        loop.add_reader(self._socket.fileno(), self._on_told)
        return self._died

    def kill(self) -> None:
        """Kill the program with everything that came of it. Legal twice."""
        if self._died is not None and not self._died.done():
            self._order(b"kill\n")
            if self._helper is None:
                self._help_after(DEAF_SECONDS)

    def close(self) -> None:
        """Let go; what still runs below it is killed. Legal twice."""
        self._is_reusable = False
        if self._socket.fileno() >= 0 and self._died is not None and not self._died.get_loop().is_closed():
            self._died.get_loop().remove_reader(self._socket.fileno())
        self._socket.close()

    def _order(self, line: bytes) -> None:
        try:
            self._socket.send(line)
        except OSError:
            pass  # it is dead, and its last words are on the way

    def _on_told(self) -> None:
        try:
            data = self._socket.recv(4096)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        *lines, self._half = (self._half + data).split(b"\n")
        for line in lines:
            self._on_line(line)
        if not data:
            self._end(Death(is_crash=True))

    def _on_line(self, line: bytes) -> None:
        word, _, rest = line.partition(b" ")
        match word:
            case b"started":
                pass
            case b"killing":
                self._reason = "" if rest == b"-" else rest.decode("ascii")
                # the last word of one that was killed itself is another's, without this one; an orphan ends itself
                self._is_reusable = self._reason != "orphaned"
                self._help_after(STUCK_SECONDS)
            case b"dead":
                self._end(death_of(int(rest.split()[0]), self._reason))
            case b"failed":
                self._is_reusable = True
                self._end(SandboxUnavailable(f"the program cannot be started: {json.loads(rest)}"))
            case _:
                self._end(Death(is_crash=True))

    def _end(self, how: Death | SandboxUnavailable) -> None:
        if self._helper is not None:
            self._helper.cancel()
            self._helper = None
        assert self._died is not None
        self._died.get_loop().remove_reader(self._socket.fileno())
        if not self._died.done():
            self._died.set_result(how) if isinstance(how, Death) else self._died.set_exception(how)

    def _help_after(self, seconds: float) -> None:
        if self._helper is not None:
            self._helper.cancel()
        self._helper = asyncio.get_running_loop().call_later(seconds, self._kill_by_spawner)

    def _kill_by_spawner(self) -> None:
        self._is_reusable = False
        self._spawner.kill_supervisor(self._number)


_idle: list[ProgramSupervisor] = []
_spawners = Spawners()
"""Never given back: executors are values that nobody closes, and one process for all of them waits for the next."""


async def program_supervisor() -> ProgramSupervisor:
    """A supervisor with nothing below it; give it back with `release`.

    Raises:
        SandboxUnavailable: No process can be started, or there are no descriptors left.
        SandboxCrashed: The spawner died just now.
    """
    while (known := _taken()) is not None:
        if known.is_usable:
            return known
        known.close()
    try:
        return await _made()
    except SandboxCrashed:
        await asyncio.sleep(DYING_SECONDS)
        return await _made()


async def _made() -> ProgramSupervisor:
    python = starter()
    spawner = _spawners.running(python) or await asyncio.to_thread(_spawners.get, python)
    try:
        made = ProgramSupervisor(spawner)
    except OSError as e:
        message = f"no socket for another process: {os.strerror(e.errno or 0)}"
        raise SandboxUnavailable(message, hint="raise the limit: ulimit -n") from None
    try:
        await made.open()
    except BaseException as e:
        made.close()
        if isinstance(e, OSError):
            raise SandboxCrashed("the process that starts programs died", hint="run it again") from e
        raise
    return made


def starter() -> Python:
    """What starts programs: without a guest, and the same whatever the user's key is, so that there is one."""
    return Python(sys.executable, has_site=False, has_guest=False, hash_seed=0)


def _taken() -> ProgramSupervisor | None:
    try:
        return _idle.pop()
    except IndexError:
        return None  # there is none, or another thread was faster


def release(supervisor: ProgramSupervisor) -> None:
    """Give a supervisor back; it is closed unless its last program came to a clean end."""
    if supervisor.is_usable and len(_idle) < MOST_IDLE:
        _idle.append(supervisor)
    else:
        supervisor.close()


@atexit.register
def _close_idle() -> None:
    while (known := _taken()) is not None:
        known.close()


def _rlimits(limits: Limits) -> dict[str, int]:
    return {
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_CPU": max(1, round(limits.cpu_seconds)),
        "RLIMIT_CORE": 0,
    }
