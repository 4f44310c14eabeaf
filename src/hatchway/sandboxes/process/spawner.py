"""The host's end of a spawner: the process that forks guests."""

from __future__ import annotations

import array
import asyncio
import json
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from hatchway.core.errors import SandboxUnavailable
from hatchway.sandboxes.process.python import START_SECONDS, Python
from hatchway.sandboxes.shortage import is_shortage, no_process
from hatchway.transports.stdio import GUEST

INSIDE = Path(__file__).parent / "inside" / "__main__.py"
HINT = "give a Python of at least 3.9: ProcessSandbox(python='/usr/bin/python3')"
RETRY_SECONDS = 0.002
"""Between two attempts to ask a spawner whose socket is full."""
CLEAN_ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}
"""Not for the code, which never sees it: an arena per thread would eat the address space a limit grants."""


class Spawner:
    """A process that forks guests. Asking is thread-safe and never blocks for long; answers come on each guest's own
    control socket, so a spawner belongs to no event loop."""

    def __init__(self, python: Python) -> None:
        try:
            ours, theirs = socket.socketpair()
        except OSError as e:
            raise no_process(e) from None
        command = [*python.argv, str(INSIDE), str(theirs.fileno()), str(GUEST) if python.has_guest else ""]
        try:
            self._process = _started(command, theirs.fileno(), python.hash_seed)
            theirs.close()
            ours.settimeout(START_SECONDS)
            _wait_until_ready(self._process, ours)
        except OSError as e:
            ours.close()
            if is_shortage(e.errno):
                raise no_process(e) from None
            raise SandboxUnavailable(f"{python.executable} cannot run guests: {e.strerror or e}", hint=HINT) from None
        finally:
            theirs.close()
        ours.setblocking(False)
        self._socket = ours
        self._numbers = count(1)
        self.python = python
        self._owner = os.getpid()
        self._is_lost = False

    @property
    def pid(self) -> int:
        """The spawner's process."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked; a spawner of the process this one was forked from cannot."""
        if self._is_lost or self._owner != os.getpid():
            return False
        return self._process.poll() is None and not self._is_hung_up()

    def lose(self) -> None:
        """A guest heard that it is dead, which can be a moment before the kernel lets anybody else know."""
        self._is_lost = True

    async def spawn(
        self, cwd: str, env: Mapping[str, str], fds: Sequence[int], packages: Sequence[str] = (), **more: Any
    ) -> int:
        """Ask for a guest that is given these descriptors: channel read and write, stdout, stderr, control.

        Args:
            more: What else the spawner is told, such as `argv`; a spawner that seals has its own.

        Returns:
            Its number, for `kill_supervisor`.

        Raises:
            OSError: The spawner is gone.
        """
        return await self._ask({"cwd": cwd, "env": dict(env), "packages": list(packages), **more}, fds)

    async def spawn_supervisor(self, control: int) -> int:
        """Ask for a supervisor of other programs, which is told over this socket what to run.

        Returns:
            Its number, for `kill_supervisor`.

        Raises:
            OSError: The spawner is gone.
        """
        return await self._ask({"programs": True}, [control])

    async def _ask(self, request: Mapping[str, Any], fds: Sequence[int]) -> int:
        number = next(self._numbers)
        await send_with_fds(self._socket, {"id": number, **request}, fds)
        return number

    def kill_supervisor(self, number: int) -> None:
        """Have a guest's supervisor killed that does not answer; what was below it dies too."""
        try:
            self._socket.send(b'{"kill":%d}\n' % number)
        except OSError:
            pass  # the spawner is gone, and with it everything it started

    def _is_hung_up(self) -> bool:
        """A killed process has closed its socket, and its guests have heard of it, before it can be waited for."""
        try:
            return not self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True  # closed here

    def close(self) -> None:
        """End the spawner with everything it started. Legal twice."""
        self._socket.close()
        if self._owner != os.getpid():
            self._process.returncode = 0  # not our child: there is nothing to wait for
            return
        try:
            self._process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


async def send_with_fds(to: socket.socket, message: Mapping[str, Any], fds: Sequence[int]) -> None:
    """Send a line of JSON over a socket that does not block, the descriptors with its first byte.

    Raises:
        OSError: Nobody is at the other end.
    """
    line = json.dumps(message).encode("ascii") + b"\n"
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
    sent = 0
    while sent < len(line):
        try:
            sent += to.send(line[sent:]) if sent else to.sendmsg([line], rights)
        except BlockingIOError:
            await asyncio.sleep(RETRY_SECONDS)


def _started(command: Sequence[str], fd: int, hash_seed: int) -> subprocess.Popen[bytes]:
    with open(os.devnull, "r+b") as null:  # Popen itself, before Python 3.11.4, loses it when there is no pipe
        return subprocess.Popen(
            command,
            pass_fds=[fd],
            env={**CLEAN_ENVIRONMENT, "PYTHONHASHSEED": str(hash_seed)},
            cwd="/",
            stdin=null,
            stdout=null,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )


def _wait_until_ready(process: subprocess.Popen[bytes], ours: socket.socket) -> None:
    """Until it has said that it can fork.

    Raises:
        OSError: It ended, or took too long.
    """
    assert process.stderr is not None
    with process.stderr as stderr:
        try:
            if ours.recv(1):
                return
            said = stderr.read().decode("utf-8", "replace").strip().splitlines()
            code = process.wait()
            raise OSError(said[-1] if said else f"it ended with exit code {code}")
        except TimeoutError:
            process.kill()
            process.wait()
            raise OSError(f"it was not ready after {START_SECONDS:g} s") from None
