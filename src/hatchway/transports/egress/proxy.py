"""The egress proxy of one guest: HTTP, and HTTPS by an authority of its own, from a socket in the guest's network."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

from hatchway.core.network import Target
from hatchway.transports.egress.authority import CertificateAuthority
from hatchway.transports.egress.connection import GuestConnection, Room, Serve

MAX_CONNECTIONS = 64
ROOM_BYTES = 64 * 1024 * 1024
"""Bytes of all bodies held at a time, either way."""
PENALTY_SECONDS = 0.5
"""How long the place of a connection that brought no request stays taken: churning through them gets nowhere."""


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
        self._places = asyncio.Semaphore(MAX_CONNECTIONS)
        self._open: dict[asyncio.Task[None], asyncio.WriteTransport] = {}
        self._loop = asyncio.get_running_loop()
        listener.setblocking(False)
        self._accepting = asyncio.create_task(self._accept())

    def close(self) -> None:
        """End every connection and stop listening. Legal twice."""
        if not self._loop.is_closed():
            self._accepting.cancel()
            for task, transport in self._open.items():
                task.cancel()
                transport.abort()
        self._listener.close()

    async def _accept(self) -> None:
        while True:
            await self._places.acquire()
            try:
                accepted, _ = await self._loop.sock_accept(self._listener)
            except ConnectionError:  # it was gone before it was taken
                self._places.release()
                continue
            await self._begin(accepted)

    async def _begin(self, accepted: socket.socket) -> None:
        loop = self._loop
        reader = asyncio.StreamReader(loop=loop)
        made: list[asyncio.StreamWriter] = []
        protocol = asyncio.StreamReaderProtocol(reader, lambda _, writer: made.append(writer), loop=loop)
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, accepted)
        connection = GuestConnection(
            reader,
            made[0],
            authority=self._authority,
            check_tunnel=self._check_tunnel,
            serve=self._serve,
            room=self._room,
        )
        task = asyncio.create_task(connection.run())
        self._open[task] = transport
        task.add_done_callback(lambda task: self._ended(task, connection))

    def _ended(self, task: asyncio.Task[None], connection: GuestConnection) -> None:
        del self._open[task]
        if not task.cancelled():
            task.exception()  # whatever a hostile guest provoked ends with its connection
        if connection.served:
            self._places.release()
        else:
            self._loop.call_later(PENALTY_SECONDS, self._places.release)
