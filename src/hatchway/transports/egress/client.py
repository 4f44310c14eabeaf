"""A client that checks: each request, each redirect, each address, before a byte is sent."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote, urljoin, urlsplit

from hatchway.core.errors import MissingExtra, ToolDenied, ToolError
from hatchway.core.network import DEFAULT_PORTS, NetworkRules, Target

try:
    import httpcore2
except ImportError:
    raise MissingExtra("the HTTP client for allowed domains", "network") from None

Headers = Sequence[tuple[str, str]]
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Gives the addresses of a host."""
Connect = Callable[[str, int, float | None], Awaitable[httpcore2.AsyncNetworkStream]]
"""Opens a connection to an address that was checked."""
REDIRECTS = frozenset({301, 302, 303, 307, 308})
MAX_REDIRECTS = 10
MAX_AT_ONCE = 16
"""Requests under way at a time, so that replies cannot fill the host's memory; others wait for their turn."""
_HOP_BY_HOP = frozenset(
    (
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"),
        *("transfer-encoding", "upgrade", "host", "content-length"),
    )
)
_NOT_ACROSS_HOSTS = frozenset(("authorization", "cookie"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the other side answered."""

    status: int
    headers: Headers
    body: bytes
    url: str
    """The URL that answered, after redirects."""


class CheckedClient:
    """Makes requests that the rules allow. It knows no proxy settings, no netrc and no cookies of the host.

    Args:
        rules: What may be reached.
        resolve: How names become addresses; the connection goes to the very address that was checked.
        connect: How connections are opened.
        max_bytes: Bytes of one body, either way.
        seconds: Time for one request, redirects included.
        ssl_context: Which certificates are believed; default is the system's store.
    """

    def __init__(
        self,
        rules: NetworkRules,
        *,
        resolve: Resolve | None = None,
        connect: Connect | None = None,
        max_bytes: int = 16 * 1024 * 1024,
        seconds: float = 30.0,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._rules = rules
        self._resolve = resolve or _system_addresses
        self._connect = connect or _connect
        self._max_bytes = max_bytes
        self._seconds = seconds
        self._ssl_context = ssl_context
        self._turns = asyncio.Semaphore(MAX_AT_ONCE)

    async def request(
        self, method: str, url: str, *, headers: Headers = (), body: bytes = b"", follow: bool = True
    ) -> Reply:
        """The reply to a request, after as many redirects as the rules allow.

        Raises:
            ToolDenied: A rule refuses it, or one of its redirects; nothing was sent there.
            ToolError: The other side cannot be reached, is too slow or sends too much.
        """
        try:
            async with self._turns, asyncio.timeout(self._seconds):
                return await self._followed(method.upper(), url, _clean(headers), body, follow)
        except TimeoutError:
            raise ToolError(f"{url} took longer than {self._seconds:g} s") from None

    async def _followed(self, method: str, url: str, headers: Headers, body: bytes, follow: bool) -> Reply:
        if len(body) > self._max_bytes:
            raise ToolError(f"the body is larger than {self._max_bytes} bytes")
        for _ in range(MAX_REDIRECTS + 1):
            target = self._rules.check(method, url)
            reply = await self._sent(method, url, target, headers, body)
            location = {name.lower(): value for name, value in reply.headers}.get("location")
            if not follow or reply.status not in REDIRECTS or location is None:
                return reply
            next_url = urljoin(url, location)
            if reply.status == 303 or (reply.status in (301, 302) and method == "POST"):
                method, body = "GET", b""
            if self._rules.check(method, next_url) != target:
                headers = [(k, v) for k, v in headers if k.lower() not in _NOT_ACROSS_HOSTS]
            url = next_url
        raise ToolError(f"{url} was redirected more than {MAX_REDIRECTS} times")

    async def _sent(self, method: str, url: str, target: Target, headers: Headers, body: bytes) -> Reply:
        backend = _CheckingBackend(self, target)
        sent = _wire(method, target, headers, body)
        if self._ssl_context is None and target.scheme == "https":
            self._ssl_context = await asyncio.to_thread(httpcore2.default_ssl_context)  # reads all authorities
        async with httpcore2.AsyncConnectionPool(network_backend=backend, ssl_context=self._ssl_context) as pool:
            try:
                async with pool.stream(method, _wire_url(target, url), headers=sent, content=body or None) as response:
                    content = await self._read(url, response.aiter_stream())
            except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException, OSError) as e:
                raise ToolError(f"{target} cannot be reached: {type(e).__name__} {e}".rstrip()) from None
            named = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in response.headers]
            return Reply(status=response.status, headers=named, body=content, url=url)

    async def _read(self, url: str, chunks: Any) -> bytes:
        got = bytearray()
        async for chunk in chunks:
            got += chunk
            if len(got) > self._max_bytes:
                raise ToolError(f"{url} answered with more than {self._max_bytes} bytes")
        return bytes(got)

    async def open(self, target: Target, timeout: float | None) -> httpcore2.AsyncNetworkStream:
        """A connection to the first address of the target that is allowed and answers.

        Raises:
            ToolDenied: An address of the name is not allowed. One is enough: the next answer may swap them.
        """
        addresses = await self._resolve(target.host, target.port)
        for address in addresses:
            self._rules.check_address(target, address)
        failure: Exception = OSError(f"{target.host} has no address")
        for address in addresses:
            try:
                return await self._connect(address, target.port, timeout)
            except OSError as e:
                failure = e
        raise failure


class _CheckingBackend(httpcore2.AsyncNetworkBackend):
    """Connects where the checks lead, whatever name it is asked for."""

    def __init__(self, client: CheckedClient, target: Target) -> None:
        self._client = client
        self._target = target

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        if host.lower().strip("[]") != self._target.host or port != self._target.port:
            raise ToolDenied(f"{host}:{port} is refused: the request was checked for {self._target}")
        return await self._client.open(self._target, timeout)


def _clean(headers: Headers) -> Headers:
    for name, value in headers:
        if not name.isascii() or any(c in name + value for c in "\r\n\0"):
            raise ToolError(f"the header {name!r} is not valid")
    return [(name, value) for name, value in headers if name.lower() not in _HOP_BY_HOP]


def _wire_url(target: Target, url: str) -> httpcore2.URL:
    """The URL that was checked, made of its parts: nothing is read from the text a second time."""
    parts = urlsplit(url)
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = "?" + quote(parts.query, safe="/%:@!$&'()*+,;=~-._?[]") if parts.query else ""
    return httpcore2.URL(scheme=target.scheme, host=target.host, port=target.port, target=path + query)


def _wire(method: str, target: Target, headers: Headers, body: bytes) -> list[tuple[bytes, bytes]]:
    host = f"[{target.host}]" if ":" in target.host else target.host
    is_standard = target.port == DEFAULT_PORTS[target.scheme]
    sent = [("Host", host if is_standard else f"{host}:{target.port}"), *headers]
    if body or method in ("POST", "PUT", "PATCH"):
        sent.append(("Content-Length", str(len(body))))
    return [(name.encode("ascii"), value.encode("latin-1", "replace")) for name, value in sent]


async def _system_addresses(host: str, port: int) -> Sequence[str]:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as e:
        raise ToolError(f"{host} cannot be resolved: {e.strerror or e}") from None
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def _connect(address: str, port: int, timeout: float | None) -> httpcore2.AsyncNetworkStream:
    try:
        backend = cast(httpcore2.AsyncNetworkBackend, httpcore2.AnyIOBackend())
        return await backend.connect_tcp(address, port, timeout=timeout)
    except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as e:
        raise OSError(str(e)) from e
