"""A server's command as a process: started, its last words kept, ended with all its children."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from hatchway.core.errors import InvalidSetting, ServerUnavailable
from hatchway.tools.mcp.settings import StdioSettings

GRACE_SECONDS = 2.0
"""How long a server may take to leave once its input is closed, and again once it is told to."""
_DEAF_SECONDS = 3.0
"""After this long a keeper that was told to kill is killed itself."""
_KEEPER = str(Path(__file__).with_name("keeper.py"))
_INHERITED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")


class ServerProcess(Protocol):
    """What the connection needs of a running server, in a jail or not."""

    @property
    def stdin(self) -> asyncio.StreamWriter | None:
        """Where requests go."""
        ...

    @property
    def stdout(self) -> asyncio.StreamReader | None:
        """Where answers come from."""
        ...

    @property
    def stderr(self) -> asyncio.StreamReader | None:
        """What it complains."""
        ...

    @property
    def returncode(self) -> int | None:
        """None while it runs."""
        ...

    async def wait(self) -> int:
        """Until it is dead."""
        ...

    def terminate(self) -> None:
        """Tell it to leave."""
        ...

    def kill(self) -> None:
        """Kill it with everything it started."""
        ...


StartServer = Callable[[str, StdioSettings], Awaitable[ServerProcess]]
"""Starts the command of the server of that name."""


class _Child:
    """A process group of this user: what leaves it, by becoming a daemon for example, is not seen any more."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def wait(self) -> int:
        return await self._process.wait()

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)  # its own group: start_new_session below


class _Kept(_Child):
    """A process below its keeper, which ends everything that came of it; see `keeper.py`."""

    def __init__(self, process: asyncio.subprocess.Process, control: socket.socket) -> None:
        super().__init__(process)
        self._control = control

    async def wait(self) -> int:
        code = await self._process.wait()
        self._control.close()
        return code

    def terminate(self) -> None:
        self._tell(b"t")

    def kill(self) -> None:
        self._tell(b"k")
        asyncio.get_running_loop().call_later(_DEAF_SECONDS, self._kill_keeper)

    def _tell(self, word: bytes) -> None:
        with suppress(OSError):  # it is dead, and everything with it
            self._control.send(word)

    def _kill_keeper(self) -> None:
        if self._process.returncode is None:
            self._process.kill()  # the server has stopped it


async def start_child(name: str, settings: StdioSettings) -> ServerProcess:
    """Start a server as a child of this process, with few of its environment variables.

    On Linux everything that comes of it ends with it, and with this process, however that ends.

    Raises:
        ServerUnavailable: There is no such program.
        InvalidSetting: It wants a wall around it.
    """
    if settings.sandbox is not None:
        raise InvalidSetting(
            f"MCP server {name!r} is to run in a sandbox, which nobody builds here",
            hint="servers, _ = hatchway.mode.mcp.mcp_servers(entries)",
        )
    try:
        kept = await _kept(settings) if sys.platform == "linux" and sys.executable else None
        return kept or await _started(settings)
    except (OSError, ValueError) as e:
        raise ServerUnavailable(
            f"MCP server {name!r}: {settings.command!r} cannot be started: {getattr(e, 'strerror', None) or e}",
            hint=f'run `{settings.command}` in a shell; the server\'s own environment is set by its "env"',
        ) from None


async def _started(settings: StdioSettings) -> ServerProcess:
    return _Child(await _spawned([settings.command, *settings.args], settings))


async def _kept(settings: StdioSettings) -> ServerProcess | None:
    """The server below a keeper, once it was started there; None where this program is no Python to run one.

    Raises:
        OSError: It cannot be started.
    """
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    keeper = [sys.executable, "-I", "-S", _KEEPER, str(theirs.fileno()), settings.command, *settings.args]
    try:
        with theirs:
            process = await _spawned(keeper, settings, theirs.fileno())
    except BaseException:
        ours.close()
        raise
    kept = _Kept(process, ours)
    try:
        told = (await asyncio.get_running_loop().sock_recv(ours, 4096)).decode(errors="replace")
    except BaseException:
        ours.close()  # it kills what it has started
        await asyncio.shield(kept.wait())
        raise
    if told == "started":
        return kept
    await kept.wait()
    if told:
        raise OSError(told.removeprefix("failed "))
    return None


async def _spawned(command: Sequence[str], settings: StdioSettings, *fds: int) -> asyncio.subprocess.Process:
    environment = {key: os.environ[key] for key in _INHERITED if key in os.environ} | dict(settings.env)
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *command,
        stdin=pipe, stdout=pipe, stderr=pipe, env=environment, cwd=settings.cwd, start_new_session=True, pass_fds=fds,
    )  # fmt: skip


async def end(process: ServerProcess, grace: float = GRACE_SECONDS) -> None:
    """Close its input, then tell it, then kill it; nothing of it is left when this returns."""
    if process.stdin is not None:
        process.stdin.close()
    for push in (process.terminate, process.kill):
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await process.wait()
                break
        push()
    process.kill()  # children that stayed behind
    await process.wait()
