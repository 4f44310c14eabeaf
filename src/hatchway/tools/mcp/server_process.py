"""A server's command as a process: started, its last words kept, ended with all its children."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from hatchway.core.errors import InvalidSetting, ServerUnavailable
from hatchway.tools.mcp.settings import StdioSettings

GRACE_SECONDS = 2.0
"""How long a server may take to leave once its input is closed, and again once it is told to."""
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
    """A process group of this user."""

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


async def start_child(name: str, settings: StdioSettings) -> ServerProcess:
    """Start a server as a child of this process, with few of its environment variables.

    Raises:
        ServerUnavailable: There is no such program.
        InvalidSetting: It wants a wall around it.
    """
    if settings.sandbox is not None:
        raise InvalidSetting(
            f"MCP server {name!r} is to run in a sandbox, which nobody builds here",
            hint="servers, _ = hatchway.mode.mcp.mcp_servers(entries)",
        )
    environment = {key: os.environ[key] for key in _INHERITED if key in os.environ} | dict(settings.env)
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            settings.command, *settings.args,
            stdin=pipe, stdout=pipe, stderr=pipe, env=environment, cwd=settings.cwd, start_new_session=True,
        )  # fmt: skip
    except (OSError, ValueError) as e:
        raise ServerUnavailable(
            f"MCP server {name!r}: {settings.command!r} cannot be started: {getattr(e, 'strerror', None) or e}",
            hint=f'run `{settings.command}` in a shell; the server\'s own environment is set by its "env"',
        ) from None
    return _Child(process)


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
