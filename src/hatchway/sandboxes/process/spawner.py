"""The host's end of a spawner: one per interpreter and host process, started when first needed."""

from __future__ import annotations

import array
import asyncio
import atexit
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from hatchway.core.errors import SandboxUnavailable
from hatchway.core.signing import default_hash_seed
from hatchway.transports.stdio import GUEST

INSIDE = Path(__file__).parent / "inside" / "__main__.py"
START_SECONDS = 30.0
"""How long an interpreter may take to load what guests need."""
HINT = "give a Python of at least 3.9: ProcessSandbox(python='/usr/bin/python3')"
RETRY_SECONDS = 0.002
"""Between two attempts to ask a spawner whose socket is full."""
CLEAN_ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}
"""Not for the code, which never sees it: an arena per thread would eat the address space a limit grants."""


@dataclass(frozen=True, slots=True)
class Python:
    """An interpreter and how it is started."""

    executable: str
    has_site: bool
    """Its site-packages are importable."""
    has_guest: bool = True
    """It loads the guest; without, it only starts programs."""
    hash_seed: int = field(default_factory=default_hash_seed)
    """Of every guest, so that sets of text come in the same order when an action is run again."""

    @property
    def argv(self) -> list[str]:
        """The command that starts it. Not isolated (`-I`), which would not read the hash seed; there is no other
        variable to read, and the folder of the script is taken off the path by the script."""
        return [self.executable, "-s"] if self.has_site else [self.executable, "-s", "-S"]

    @property
    def version(self) -> str:
        """The version recordings depend on, as `"3.12"`: between patch versions they can change."""
        return "{}.{}".format(*sys.version_info[:2]) if self.executable == sys.executable else _asked(self.executable)


@cache
def _asked(executable: str) -> str:
    """The version of an interpreter; its path, where it does not say: it will be told that it does not start."""
    command = [executable, "-I", "-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return executable
    return done.stdout.strip()


class Spawner:
    """A process that forks guests. Asking is thread-safe and never blocks for long; answers come on each guest's own
    control socket, so a spawner belongs to no event loop."""

    def __init__(self, python: Python) -> None:
        ours, theirs = socket.socketpair()
        command = [*python.argv, str(INSIDE), str(theirs.fileno()), str(GUEST) if python.has_guest else ""]
        try:
            self._process = _started(command, theirs.fileno(), python.hash_seed)
            theirs.close()
            ours.settimeout(START_SECONDS)
            _wait_until_ready(self._process, ours)
        except OSError as e:
            ours.close()
            raise SandboxUnavailable(f"{python.executable} cannot run guests: {e.strerror or e}", hint=HINT) from None
        finally:
            theirs.close()
        ours.setblocking(False)
        self._socket = ours
        self._numbers = count(1)
        self.python = python
        self._owner = os.getpid()

    @property
    def pid(self) -> int:
        """The spawner's process."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked; a spawner of the process this one was forked from cannot."""
        return self._owner == os.getpid() and self._process.poll() is None and not self._is_hung_up()

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
    return subprocess.Popen(
        command,
        pass_fds=[fd],
        env={**CLEAN_ENVIRONMENT, "PYTHONHASHSEED": str(hash_seed)},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
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


_spawners: dict[Python, Spawner] = {}
_starting = threading.Lock()


def running_spawner(python: Python) -> Spawner | None:
    """The spawner of an interpreter, if there is one."""
    known = _spawners.get(python)
    return known if known is not None and known.is_alive else None


def spawner_for(python: Python) -> Spawner:
    """The spawner of an interpreter; a new one if there is none or it died. Blocks for some milliseconds then.

    Raises:
        SandboxUnavailable: The interpreter cannot be started.
    """
    with _starting:
        known = _spawners.get(python)
        if known is None or not known.is_alive:
            if known is not None:
                known.close()
            known = _spawners[python] = Spawner(python)
        return known


def this_python() -> Python:
    """The interpreter of the host, without its site-packages."""
    return Python(sys.executable, has_site=False)


@atexit.register
def _close_all() -> None:
    while _spawners:
        _spawners.popitem()[1].close()
