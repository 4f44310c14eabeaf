"""The HTTP side of a server: a client with the host's headers, and what the other side answered when it refused."""

from __future__ import annotations

import http
import ssl
from collections.abc import AsyncGenerator
from typing import Any

import httpx2

from hatchway.core.errors import InvalidSetting
from hatchway.tools.mcp.settings import HttpSettings
from hatchway.tools.mcp.whole import Whole

_CONNECT_SECONDS = 30.0


class Web(httpx2.AsyncHTTPTransport):
    """The connections to one server; remembers how the last request failed."""

    def __init__(self, settings: HttpSettings) -> None:
        try:
            trusted = ssl.create_default_context(cafile=settings.ca_file)
        except (OSError, ssl.SSLError) as e:
            raise InvalidSetting(f"the certificates in {settings.ca_file} cannot be read: {e}") from None
        super().__init__(verify=trusted)
        self._headers = {"Accept-Encoding": "identity"} | dict(settings.headers)  # what is packed cannot be mended
        self._has_stream = False
        self.is_forgotten = False
        """Whether the server does not know our session any more: it was started anew."""
        self._status = 0
        self._failure: Exception | None = None

    def client(self) -> httpx2.AsyncClient:
        """A client over these connections; reading has no limit of its own, calls have."""
        timeout = httpx2.Timeout(_CONNECT_SECONDS, read=None)
        return httpx2.AsyncClient(headers=self._headers, timeout=timeout, transport=self)

    async def handle_async_request(self, request: Any) -> Any:
        """Send a request."""
        self._status, self._failure = 0, None
        try:
            response = await super().handle_async_request(request)
        except Exception as e:
            self._failure = e
            raise
        self._status = response.status_code
        self._notice(request, response.status_code)
        if "content-encoding" not in response.headers:
            response.stream = _Mended(response.stream)
        return response

    def _notice(self, request: Any, status: int) -> None:
        """A session that is gone is answered with 404, by some servers with 400; where a server tells of changes, only
        if it did so before: some have no such stream and say it as they like."""
        is_stream = request.method == "GET"
        if status in (400, 404) and "mcp-session-id" in request.headers and (self._has_stream or not is_stream):
            self.is_forgotten = True
        self._has_stream = self._has_stream or (is_stream and status < 300)

    def refusal(self) -> str:
        """How the last request failed: a status, or why there was no answer. Empty when it did not."""
        if self._failure is not None:
            kind = "TLS failed" if "ssl" in repr(self._failure).lower() else "no connection"
            return f"{kind}: {self._failure or type(self._failure).__name__}"
        if self._status < 400:
            return ""
        try:
            return f"HTTP {self._status} {http.HTTPStatus(self._status).phrase}"
        except ValueError:
            return f"HTTP {self._status}"

    def hint(self) -> str:
        """What to change about it."""
        if self._status in (401, 403):
            return 'set its "headers", such as {"Authorization": "Bearer ${TOKEN}"}'
        failed = repr(self._failure).lower() if self._failure is not None else ""
        if "certificate" in failed:
            return 'set its "ca_file" to the certificate that signed the server\'s'
        if "ssl" in failed:
            return "look whether the server speaks TLS at this port; one that does not has an http:// url"
        return "look whether the server runs, and whether the url is right" if self._failure or self._status else ""


class _Mended(httpx2.AsyncByteStream):
    """The bytes of an answer, with whole characters only."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        whole = Whole()
        async for piece in self._stream:
            if mended := whole.feed(piece):
                yield mended
        if rest := whole.end():
            yield rest

    async def aclose(self) -> None:
        await self._stream.aclose()
