"""One program in one container, from the client's start to the container's removal."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from hatchway.sandboxes.container.engine import Engine
from hatchway.sandboxes.starting import to_the_end

CHUNK = 1 << 16
STUCK_SECONDS = 5.0
"""A client that has not ended so long after its container was killed is killed as well."""


class Taker(Protocol):
    """Who takes what a stream brings."""

    def take(self, data: bytes) -> None:
        """Some bytes more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerEnd:
    """How a container ended."""

    client_code: int
    """Exit code of the client, which is the container's when the engine ran it."""
    is_timeout: bool
    """Whether it was killed because its time was over."""


class ContainerRun:
    """A container that is killed by its name, whatever becomes of the client.

    Args:
        engine: Who runs it.
        name: Its name.
        args: What the client is started with.
    """

    def __init__(self, engine: Engine, name: str, args: Sequence[str]) -> None:
        self._engine, self._name, self._args = engine, name, args

    async def to_end(self, stdin: bytes, stdout: Taker, stderr: Taker, timeout: float | None) -> ContainerEnd:
        """Run it. Whoever is cancelled, or runs out of time, leaves no container behind.

        Raises:
            SandboxUnavailable: There is no client.
        """
        pipe = subprocess.PIPE
        client = await asyncio.create_subprocess_exec(
            self._engine.client(), *self._args, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
        assert client.stdin is not None
        assert client.stdout is not None
        assert client.stderr is not None
        carrying = asyncio.gather(
            _feed(client.stdin, stdin), _drain(client.stdout, stdout), _drain(client.stderr, stderr)
        )
        is_timeout = False
        try:
            async with asyncio.timeout(timeout):
                await asyncio.shield(carrying)
                await client.wait()
        except TimeoutError:
            is_timeout = True
        finally:
            await to_the_end(self._end(client, carrying))
        return ContainerEnd(client_code=client.returncode or 0, is_timeout=is_timeout)

    async def _end(self, client: asyncio.subprocess.Process, carrying: asyncio.Future[Any]) -> None:
        """Kill the container by name; the client ends with it, or is ended. What it had written is still taken."""
        if client.returncode is None and not (await self._engine.kill(self._name) and await _ended(client)):
            if client.returncode is None:
                client.kill()  # the engine is gone, or was only about to create the container
                await client.wait()
            await self._engine.remove(self._name, may_come=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(STUCK_SECONDS):
                await carrying


async def _ended(client: asyncio.subprocess.Process) -> bool:
    try:
        async with asyncio.timeout(STUCK_SECONDS):
            await client.wait()
    except TimeoutError:
        return False
    return True


async def _drain(stream: asyncio.StreamReader, taker: Taker) -> None:
    while data := await stream.read(CHUNK):
        taker.take(data)


async def _feed(stream: asyncio.StreamWriter, data: bytes) -> None:
    try:
        stream.write(data)
        await stream.drain()
        stream.close()
        await stream.wait_closed()
    except (BrokenPipeError, ConnectionResetError):
        pass  # the program did not want to read it all
