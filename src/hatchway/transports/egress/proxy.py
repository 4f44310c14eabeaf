"""The egress proxy of one guest: HTTP, and HTTPS by an authority of its own, from a socket in the guest's network."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable

from hatchway.core.network import Target
from hatchway.transports.egress.authority import CertificateAuthority
from hatchway.transports.egress.connection import GuestConnection, Room, Serve

MAX_CONNECTIONS = 64
ROOM_BYTES = 64 * 1024 * 1024
"""Bytes of all bodies held at a time, either way."""
CLOSE_SECONDS = 5.0
"""How long a guest may take to read the rest and to close."""
PENALTY_SECONDS = 0.5
"""How long the place of a connection that brought no request stays taken: churning through them gets nowhere."""
_log = logging.getLogger("hatchway")


class EgressProxy:
    """Accepts what a guest connects to; bound to the running loop. It is owned: `close` it.

    Args:
        listener: A listening socket that only the guest can reach; it is closed with the proxy.
        authority: Signs for the hosts the guest speaks with.
        check_tunnel: Raises ToolDenied for a host that may not be spoken with at all.
        serve: Makes each request.
    """

    def __init__(
        self,
        listener: socket.socket,
        *,
        authority: CertificateAuthority,
        check_tunnel: Callable[[Target], Awaitable[None]],
        serve: Serve,
    ) -> None:
        self._listener = listener
        self._authority = authority
        self._check_tunnel = check_tunnel
        self._serve = serve
        self._room = Room(ROOM_BYTES)
        self._places = MAX_CONNECTIONS
        self._open: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._loop = asyncio.get_running_loop()
        listener.setblocking(False)
        self._loop.add_reader(listener.fileno(), self._on_guest)

    def close(self) -> None:
        """End every connection and stop listening. Legal twice."""
        if self._is_closed:
            return
        self._is_closed = True
        if not self._loop.is_closed():
            self._loop.remove_reader(self._listener.fileno())
            for task in self._open:
                task.cancel()
        self._listener.close()

    def _on_guest(self) -> None:
        """A guest connects; while no place is free the next one waits in the kernel's queue."""
        try:
            accepted, _ = self._listener.accept()
        except OSError:
            return  # it was gone before it was taken
        self._places -= 1
        if not self._places:
            self._loop.remove_reader(self._listener.fileno())
        task = self._loop.create_task(self._serve_guest(accepted))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _serve_guest(self, accepted: socket.socket) -> None:
        served = 0
        try:
            served = await self._served(accepted)
        except Exception:
            _log.debug("the proxy ended a connection", exc_info=True)  # whatever a hostile guest provoked ends with it
        finally:
            if served:
                self._free_place()
            elif not self._is_closed:
                self._loop.call_later(PENALTY_SECONDS, self._free_place)

    async def _served(self, accepted: socket.socket) -> int:
        """How many requests the connection brought."""
        reader = asyncio.StreamReader(loop=self._loop)
        made: list[asyncio.StreamWriter] = []
        protocol = asyncio.StreamReaderProtocol(reader, lambda _, writer: made.append(writer), loop=self._loop)
        try:
            transport, _ = await self._loop.connect_accepted_socket(lambda: protocol, accepted)
        except BaseException:
            accepted.close()
            raise
        connection = GuestConnection(
            reader,
            made[0],
            authority=self._authority,
            check_tunnel=self._check_tunnel,
            serve=self._serve,
            room=self._room,
        )
        try:
            await connection.run()
            async with asyncio.timeout(CLOSE_SECONDS):
                await made[0].wait_closed()
        except (OSError, TimeoutError):
            pass  # the guest is gone, or does not take its leave
        finally:
            transport.abort()
        return connection.served

    def _free_place(self) -> None:
        self._places += 1
        if self._places == 1 and not self._is_closed:
            self._loop.add_reader(self._listener.fileno(), self._on_guest)
