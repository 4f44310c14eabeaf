"""`fetch`: one request of the code, whichever way it came, and the reply as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypedDict

from hatchway.transports.egress.client import CheckedClient, Headers

_TEXTUAL = ("text/", "application/json", "application/xml", "application/javascript", "application/x-www-form")
_TEXTUAL_ENDS = ("+json", "+xml")


class Fetched(TypedDict):
    """What `fetch` gives."""

    status: int
    url: str
    headers: dict[str, str]
    text: str
    body: bytes


async def fetched(
    client: CheckedClient,
    url: str,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: str | bytes | None = None,
    follow_redirects: bool = True,
) -> Fetched:
    """Make a request.

    Raises:
        ToolDenied: A rule refuses it; nothing was sent there.
        ToolError: The other side cannot be reached, is too slow or sends too much.
    """
    content = body.encode() if isinstance(body, str) else body or b""
    named = [(str(name), str(value)) for name, value in (headers or {}).items()]
    reply = await client.request(method, url, headers=named, body=content, follow=follow_redirects)
    joined = join_headers(reply.headers)
    text = _text(joined.get("content-type", ""), reply.body)
    return {"status": reply.status, "url": reply.url, "headers": joined, "text": text, "body": reply.body}


def join_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers by lower-case name; one that came more than once is joined by commas, cookies by line ends."""
    joined: dict[str, str] = {}
    for name, value in headers:
        name = name.lower()
        between = "\n" if name == "set-cookie" else "; " if name == "cookie" else ", "
        joined[name] = joined[name] + between + value if name in joined else value
    return joined


def split_headers(joined: Mapping[str, str]) -> Headers:
    """The headers that `join_headers` joined, each cookie by itself."""
    return [(name, one) for name, value in joined.items() for one in value.split("\n")]


def _text(content_type: str, body: bytes) -> str:
    """The body as text; empty for pictures, archives and the like."""
    kind, _, parameters = content_type.lower().partition(";")
    kind = kind.strip()
    if kind and not kind.startswith(_TEXTUAL) and not kind.endswith(_TEXTUAL_ENDS):
        return ""
    return body.decode(_charset(parameters), "replace")


def _charset(parameters: str) -> str:
    _, _, after = parameters.partition("charset=")
    name = after.split(";")[0].strip().strip("\"'") or "utf-8"
    try:
        return name if isinstance(b"".decode(name), str) else "utf-8"
    except (LookupError, ValueError):
        return "utf-8"
