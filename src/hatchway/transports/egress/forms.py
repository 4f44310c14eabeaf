"""What a request to the proxy may look like, and where it goes. Everything that says where must say the same."""

from __future__ import annotations

from collections.abc import Sequence

import h11

from hatchway.core.errors import ToolDenied
from hatchway.core.network import Target, target_of

HOP_BY_HOP = frozenset(
    (
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"),
        *("transfer-encoding", "upgrade", "host", "content-length", "expect"),
    )
)


class BadRequest(Exception):
    """It is no request that a proxy takes; the text says why."""


def connect_target(request: h11.Request) -> Target:
    """Where a CONNECT leads.

    Raises:
        BadRequest: It names no host and port.
        ToolDenied: Its Host header names another one.
    """
    authority = request.target.decode("ascii")
    if not authority.rpartition(":")[2].isdigit() or any(c in authority for c in "/?#@"):
        raise BadRequest("CONNECT takes a host and a port")
    target = target_of(f"https://{authority}")
    check_host(request, target, default_port=target.port)
    return target


def url_of(request: h11.Request, tunnel: Target | None) -> str:
    """The absolute URL that is asked for, in a tunnel or to the proxy itself.

    Raises:
        BadRequest: The target has not the form it must have here.
        ToolDenied: It asks for an upgrade, or the parts that say where do not agree.
    """
    _check_framing(request)
    asked = request.target.decode("ascii")
    if tunnel is None:
        if not asked.lower().startswith("http://"):
            raise BadRequest("this is a proxy: it takes absolute http:// URLs, and CONNECT for https://")
        check_host(request, target_of(asked), default_port=80)
        return asked
    if not asked.startswith("/"):
        raise BadRequest("inside a tunnel the target is a path")
    check_host(request, tunnel, default_port=443)
    return f"{tunnel}{asked}" if ":" not in tunnel.host else f"https://[{tunnel.host}]:{tunnel.port}{asked}"


def check_host(request: h11.Request, target: Target, *, default_port: int) -> None:
    """Refuse a Host header that names another place than the target.

    Raises:
        ToolDenied: It does.
    """
    for value in values(request, b"host"):
        named = target_of(f"https://{value}")
        port = named.port if value.rpartition(":")[2] == str(named.port) else default_port
        if (named.host, port) != (target.host, target.port):
            raise ToolDenied(f"{target} is refused: the Host header names {value!r}")


def end_to_end(request: h11.Request) -> Sequence[tuple[str, str]]:
    """The headers that are meant for the other side."""
    named = {token.strip().lower() for value in values(request, b"connection") for token in value.split(",")}
    found = [(name.decode("ascii"), value.decode("latin-1")) for name, value in request.headers]
    return [(name, value) for name, value in found if name not in HOP_BY_HOP and name not in named]


def values(request: h11.Request, name: bytes) -> list[str]:
    """All values of a header."""
    return [value.decode("latin-1") for key, value in request.headers if key == name]


def _check_framing(request: h11.Request) -> None:
    if values(request, b"upgrade"):
        raise ToolDenied("an upgrade to another protocol is refused: only HTTP requests are allowed")
    if values(request, b"transfer-encoding") and values(request, b"content-length"):
        raise BadRequest("a request has either Content-Length or Transfer-Encoding")
