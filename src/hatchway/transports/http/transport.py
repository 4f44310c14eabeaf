"""Calls over HTTP: the guest posts each one and is answered when the host has the answer.

For code that runs where only HTTP reaches: another container, another machine, a vendor's sandbox.

| endpoint | body | answered |
|---|---|---|
| `POST /call` | one call | when the host has the answer: `{"result": …}` or `{"error": {"type", "message"}}` |
| `POST /complete` | the end of the code | at once: `{"ok": true}` |
| `POST /messages` | messages, one per line | at once: `{"ok": true}`; for a guest with several calls on the way |
| `POST /answers` | `{"received": N}` | when there are answers after number N: `{"received", "answers"}` |

A request that waits is answered `202 {"pending": true}` now and then and has to be posted again. A guest whose
connection dropped posts the same bytes again: calls are known by their id, and the host never sees one twice.
"""

from __future__ import annotations

import os
import secrets
from typing import Any

from hatchway.core.calls import FunctionCall
from hatchway.core.errors import InvalidSetting, TransportError
from hatchway.core.limits import MIB
from hatchway.core.sandbox import Functions
from hatchway.core.transport import CallbackTransport, Received, TransportConfig
from hatchway.transports.http.exchange import HttpExchange
from hatchway.transports.http.server import HttpServer
from hatchway.transports.http.stub import stub_code

POLL_SECONDS = 240.0
"""A request that waits is answered `202` after this: no proxy sees the connection idle for long."""
MAX_POLL_SECONDS = 270.0
"""The guest gives a silent connection up after 300 seconds; the server has to speak before that."""
MAX_BODY_BYTES = 65 * MIB
"""One body: `Limits.value_bytes`, and room for what is around the value."""

URL_VARIABLE = "HATCHWAY_CALLBACK_URL"
"""Names the environment variable with the address the guest posts to."""
TOKEN_VARIABLE = "HATCHWAY_CALLBACK_TOKEN"
"""Names the environment variable with the bearer token of this execution."""


class HttpCallbackTransport(CallbackTransport):
    """A channel over HTTP for one execution at a time.

    Args:
        host: The interface to listen on.
        port: 0 picks a free one.
        public_url: Where the guest reaches this server, when that is not `http://host:port` (a proxy, a tunnel, a
            container's view of the host). The paths `/call` and `/complete` are appended to it.
        max_body_bytes: Bytes one request may have.
        poll_seconds: A call unanswered after this is answered `202 {"pending": true}`, and asked for again.

    Raises:
        InvalidSetting: A setting is out of range, or the address cannot be dialled and no `public_url` is given.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        public_url: str | None = None,
        max_body_bytes: int = MAX_BODY_BYTES,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        if not 0 < poll_seconds <= MAX_POLL_SECONDS:
            raise InvalidSetting(f"poll_seconds must be above 0 and at most {MAX_POLL_SECONDS:g}, not {poll_seconds!r}")
        if max_body_bytes < 1:
            raise InvalidSetting(f"max_body_bytes must be positive, not {max_body_bytes!r}")
        if public_url is None and host in _EVERY_INTERFACE:
            raise InvalidSetting(
                f"nobody can dial {host!r}", hint='say where the guest finds it: public_url="http://…"'
            )
        self._host, self._port, self._public_url = host, port, public_url
        self._max_body_bytes = max_body_bytes
        self._poll_seconds = poll_seconds
        self._server: HttpServer | None = None
        self._exchange: HttpExchange | None = None

    async def start(self, available_functions: Functions) -> TransportConfig:
        """Listen, with a token made for this execution.

        Raises:
            TransportError: The address cannot be bound, or an execution is still open on this transport.
        """
        if self._server is not None:
            raise TransportError("this transport already serves an execution", hint="use one transport per execution")
        token = secrets.token_urlsafe(32)
        exchange = HttpExchange(value_bytes=self._max_body_bytes, poll_seconds=self._poll_seconds)
        server = HttpServer(exchange.handlers, token=token, max_body_bytes=self._max_body_bytes)
        await self._listen(server, self._port)
        self._server, self._exchange = server, exchange
        env_vars = {URL_VARIABLE: self.url, TOKEN_VARIABLE: token}
        stub = stub_code(available_functions, value_bytes=self._max_body_bytes)
        return TransportConfig(stub_code=stub, env_vars=env_vars)

    @property
    def url(self) -> str:
        """Where the guest posts to. Raises TransportError before `start`."""
        address = f"[{self._host}]" if ":" in self._host else self._host
        return self._public_url or f"http://{address}:{self.port}"

    @property
    def port(self) -> int:
        """What the server is bound to. Raises TransportError before `start`."""
        return self._opened()[0].port

    async def restart(self) -> None:
        """Close the server and open it again on the same port; token and calls stay, and the guest finds it again.

        Raises:
            TransportError: The port was taken meanwhile, or the transport is not started.
        """
        server, _ = self._opened()
        port = server.port
        await server.close()
        await self._listen(server, port)

    async def receive(self) -> Received:
        """As the contract says; EOFError also after the end of the code was given."""
        return await self._opened()[1].receive()

    def line(self, call: FunctionCall) -> bytes | None:
        """As the contract says."""
        return self._exchange.line(call) if self._exchange is not None else None

    async def send_result(self, value: Any, *, call_id: str | None = None) -> None:
        """As the contract says; also past `max_body_bytes` a value cannot cross."""
        await self._opened()[1].send_result(value, call_id)

    async def send_error(self, error: BaseException, *, call_id: str | None = None) -> None:
        """As the contract says."""
        await self._opened()[1].send_error(error, call_id)

    async def stop(self) -> None:
        """Tell the guest that the execution is over, and close the server with every connection."""
        server, self._server = self._server, None
        if server is None or self._exchange is None:
            return
        self._exchange.end("the transport was stopped")
        await server.close(answer=True)

    def _opened(self) -> tuple[HttpServer, HttpExchange]:
        if self._server is None or self._exchange is None:
            raise TransportError("the channel is not open")
        return self._server, self._exchange

    async def _listen(self, server: HttpServer, port: int) -> None:
        try:
            await server.open(self._host, port)
        except OSError as e:
            reason = os.strerror(e.errno) if e.errno and e.errno > 0 else str(e)
            hint = "port=0 picks a free one" if port else "host= has to be an address of this machine"
            raise TransportError(f"cannot listen on {self._host}:{port}: {reason}", hint=hint) from None


_EVERY_INTERFACE = ("", "0.0.0.0", "::")
