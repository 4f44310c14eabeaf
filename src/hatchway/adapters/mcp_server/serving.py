"""Serving MCP: over stdin and stdout, or over streamable HTTP behind a bearer token."""

from __future__ import annotations

import asyncio
import hmac
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from hatchway.adapters.mcp_server.face import McpFace
from hatchway.adapters.mcp_server.input_lines import InputLines
from hatchway.core.errors import InvalidSetting, ServerUnavailable

if TYPE_CHECKING:
    import uvicorn

_GRACE_SECONDS = 1
"""How long open streams may take to end."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")


async def serve_stdio(face: McpFace) -> None:
    """Serve the client that started this process, until it hangs up."""
    server, lines = face.server(), InputLines()
    try:
        async with stdio_server(stdin=cast(Any, lines)) as (read, write):
            await server.run(read, write, server.create_initialization_options())
    except* BrokenPipeError:
        pass  # the client does not listen any more
    finally:
        lines.close()
        await face.aclose()


async def serve_http(
    face: McpFace,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    token: str | None,
    on_ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve clients that have the token, at `/mcp`, until this is cancelled or the process is told to end.

    Args:
        face: What is served.
        host: Where it listens; anything but loopback is reachable by others.
        port: 0 takes a free one.
        token: What clients send as `Authorization: Bearer …`; None lets in every program of this machine.
        on_ready: Told the address once it listens.

    Raises:
        InvalidSetting: No token, and others can reach it.
        ServerUnavailable: The port is taken.
    """
    import uvicorn

    if token is None and host not in LOOPBACK:
        raise InvalidSetting(f"serving on {host} without a token would let everybody in", hint="give a token")
    security = TransportSecuritySettings(allowed_hosts=[f"{host}:*"], allowed_origins=[f"http://{host}:*"])
    app: Any = face.server().streamable_http_app(host=host, transport_security=None if host in LOOPBACK else security)
    guarded = app if token is None else _Guard(app, token)
    config = uvicorn.Config(
        guarded, host=host, port=port, log_level="warning", lifespan="on", timeout_graceful_shutdown=_GRACE_SECONDS
    )
    try:
        listening = config.bind_socket()
        listening.listen()  # whoever is told the address gets through, if only into the queue
    except SystemExit:
        await face.aclose()
        raise ServerUnavailable(f"{host}:{port} cannot be listened on", hint="take another --port") from None
    try:
        on_ready(f"http://{host}:{listening.getsockname()[1]}/mcp")
        await _until_told(uvicorn.Server(config), listening)
    finally:
        listening.close()
        await face.aclose()


async def _until_told(server: uvicorn.Server, listening: socket.socket) -> None:
    """Serve until a signal or a cancellation; either way clients are hung up on in order."""
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        server.should_exit = True
        await asyncio.gather(serving, return_exceptions=True)
        raise


class _Guard:
    """Lets requests through that carry the token."""

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers: dict[bytes, bytes] = dict(scope.get("headers") or ())
        given = headers.get(b"authorization", b"")
        if scope["type"] == "lifespan" or hmac.compare_digest(given, self._wanted):
            await self._app(scope, receive, send)
            return
        told = [(b"www-authenticate", b'Bearer realm="hatchway"'), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 401, "headers": told})
        await send({"type": "http.response.body", "body": b""})
