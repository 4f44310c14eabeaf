"""A small HTTP/1.1 server on asyncio: POST to a few fixed paths, a bearer token before anything else is looked at.

Own code instead of a library: what a general server adds (routing, chunked bodies, upgrades) is what has to be
refused here, and the token and every size are checked before a byte of a body is kept.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping

from hatchway.transports.http.connection import LINGER_SECONDS, Connection, Handler
from hatchway.transports.http.head import Head, Refused

MAX_CONNECTIONS = 128
"""Connections open at one time; one more takes the place of a stranger's, or is told to come back."""
BODIES_AT_ONCE = 4
"""Bodies of full size that may be held at one time: the bound of what a guest can make the host buffer."""


class HttpServer:
    """Listens, and hands the body of each authorized POST to the handler of its path."""

    def __init__(self, handlers: Mapping[str, Handler], *, token: str, max_body_bytes: int) -> None:
        self._handlers = handlers
        self._authorization = f"Bearer {token}".encode("ascii")
        self._max_body_bytes = max_body_bytes
        self._connections: dict[Connection, None] = {}
        self._bytes_held = 0
        self._server: asyncio.Server | None = None
        self.port = 0
        """What `open` bound."""

    async def open(self, host: str, port: int) -> None:
        """Bind and listen; port 0 takes a free one. Raises OSError."""
        loop = asyncio.get_running_loop()
        # Started in a second step: cancelled in the midst of `create_server`, a listening socket would be lost.
        server = await loop.create_server(
            lambda: Connection(self), host, port, backlog=MAX_CONNECTIONS, start_serving=False
        )
        try:
            await server.start_serving()
        except BaseException:
            server.close()
            raise
        self._server = server
        self.port = server.sockets[0].getsockname()[1]

    async def close(self, *, answer: bool = False) -> None:
        """Stop listening and close every connection; what is already answered gets a second to be delivered.

        Args:
            answer: Handlers get a second to answer the requests they have; otherwise they are cancelled.
        """
        if self._server is None:
            return
        server, self._server = self._server, None
        server.close()
        tasks = [connection.task for connection in self._connections if connection.task is not None]
        if answer and tasks:
            await asyncio.wait(tasks, timeout=LINGER_SECONDS)
        for connection in tuple(self._connections):
            connection.close()
        if not await self._drained():
            for connection in tuple(self._connections):
                connection.abort()
            await self._drained()
        await server.wait_closed()

    async def _drained(self) -> bool:
        gone = [connection.gone for connection in self._connections]
        return not gone or not (await asyncio.wait(gone, timeout=LINGER_SECONDS))[1]

    def admit(self, connection: Connection) -> None:
        """Count a connection in. Raises Refused."""
        strangers = [known for known in self._connections if not known.is_known]
        self._connections[connection] = None
        if self._server is None:
            raise Refused(503, "the server is closing: try again later")
        if len(self._connections) > MAX_CONNECTIONS:
            if not strangers:
                raise Refused(503, f"{MAX_CONNECTIONS} connections are open: try again later")
            strangers[0].abort()

    def forget(self, connection: Connection) -> None:
        """Count a connection out."""
        self._connections.pop(connection, None)

    def handler_of(self, head: Head) -> Handler:
        """Who answers this request. Raises Refused; the token comes first, so that a stranger learns nothing else."""
        if not hmac.compare_digest(head.authorization, self._authorization):
            raise Refused(401, "the bearer token is missing or wrong")
        handler = self._handlers.get(head.path)
        if handler is None:
            raise Refused(404, f"no such path; there are {', '.join(self._handlers)}")
        if head.method != "POST":
            raise Refused(405, "this path takes POST only")
        if head.chunked:
            raise Refused(501, "transfer codings are not accepted: send Content-Length")
        if head.length is None:
            raise Refused(411, "Content-Length is missing")
        if head.length > self._max_body_bytes:
            raise Refused(413, f"the body has {head.length} bytes, {self._max_body_bytes} are accepted")
        return handler

    def reserve(self, size: int) -> None:
        """Make room for a body. Raises Refused."""
        if self._bytes_held + size > BODIES_AT_ONCE * self._max_body_bytes:
            raise Refused(503, "too many large bodies at once: try again later")
        self._bytes_held += size

    def release(self, size: int) -> None:
        """A body is dropped, or will never come."""
        self._bytes_held -= size
