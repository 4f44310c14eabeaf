"""`fetch`: the network for code that has no sockets. A tool of the host, offered when domains were granted.

Importing this without the extra `network` raises `MissingExtra`.
"""

from __future__ import annotations

from typing import Any

from hatchway.core.network import NetworkRules
from hatchway.tools.functions import Tool
from hatchway.transports.egress.client import CheckedClient
from hatchway.transports.egress.fetch import Fetched, fetched


def fetch_tool(rules: NetworkRules, **client_settings: Any) -> Tool:
    """The tool that makes the requests `rules` allow. Where a sandbox has a proxy, that one's requests come to it too.

    Args:
        rules: What may be reached.
        client_settings: As `CheckedClient` takes them: `resolve`, `connect`, `max_bytes`, `seconds`, `ssl_context`.

    Raises:
        MissingExtra: The HTTP client is not installed.
    """
    client = CheckedClient(rules, **client_settings)

    async def fetch(
        url: str,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: str | bytes | None = None,
        follow_redirects: bool = True,
    ) -> Fetched:
        return await fetched(client, url, method, headers, body, follow_redirects)

    fetch.__doc__ = f"Make an HTTP request. Allowed: {_listed(rules)}. A refused request raises and says why."
    return Tool.from_function(fetch)


def _listed(rules: NetworkRules) -> str:
    """What is allowed, as a model reads it."""
    return ", ".join(
        target if methods is None else f"{target} ({', '.join(methods)})" for target, methods in rules.domains()
    )
