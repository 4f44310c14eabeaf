"""`fetch`: the network for code that has no sockets. A tool of the host, offered when domains were granted."""

from __future__ import annotations

from typing import Any, TypedDict

from hatchway.core.network import NetworkRules
from hatchway.tools.functions import Tool


class Fetched(TypedDict):
    """What `fetch` gives."""

    status: int
    url: str
    headers: dict[str, str]
    text: str
    body: bytes


def fetch_tool(rules: NetworkRules, **client_settings: Any) -> Tool:
    """The tool that makes the requests `rules` allow.

    Raises:
        MissingExtra: The HTTP client is not installed.
    """
    from hatchway.transports.egress.client import CheckedClient, as_headers

    client = CheckedClient(rules, **client_settings)

    async def fetch(
        url: str, method: str = "GET", headers: dict[str, str] | None = None, body: str | bytes | None = None
    ) -> Fetched:
        """Make an HTTP request to an allowed domain. A refused request raises, and says which rule refused it."""
        content = body.encode() if isinstance(body, str) else body or b""
        reply = await client.request(method, url, headers=as_headers(headers), body=content)
        named = {name.lower(): value for name, value in reply.headers}
        text = reply.body.decode(_charset(named.get("content-type", "")), "replace")
        return {"status": reply.status, "url": reply.url, "headers": named, "text": text, "body": reply.body}

    return Tool.from_function(fetch)


def _charset(content_type: str) -> str:
    _, _, after = content_type.lower().partition("charset=")
    name = after.split(";")[0].strip().strip("\"'") or "utf-8"
    try:
        b"".decode(name)
    except LookupError:
        return "utf-8"
    return name
