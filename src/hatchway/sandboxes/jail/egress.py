"""The way out of a jail that was granted domains: what its code must know, and one gateway per child."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from hatchway.core.errors import ToolDenied, ToolError
from hatchway.core.network import NetworkRules, Target

if TYPE_CHECKING:
    from hatchway.transports.egress.authority import CertificateAuthority
    from hatchway.transports.egress.client import CheckedClient

PROXIED = "`urllib` and other HTTP clients reach the domains that `fetch` allows; there is no other network."
"""Told to the model."""
PROXY_PORT = 3128
"""Of the loopback in each child's own net namespace, where there is nothing else."""
IDLE_SECONDS = 0.2
"""How long a session that runs no action waits to be told so."""
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
"""Where most programs look by themselves."""
_PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy")
_CERTIFICATE_VARIABLES = (
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "GIT_SSL_CAINFO",
    "AWS_CA_BUNDLE",
)  # fmt: skip


class Caller(Protocol):
    """Who hands the requests of the code on as calls: an execution."""

    @property
    def is_over(self) -> bool:
        """Whether the action has ended."""
        ...

    def offers(self, function_name: str) -> bool:
        """Whether the code was given this function."""
        ...

    def count_call(self) -> None:
        """Count a call that the driver is not asked about; raises ToolError when it is one too many."""
        ...

    async def call_beside(self, function_name: str, arguments: Mapping[str, Any]) -> Any:
        """What the driver answers to a call that came beside the channel."""
        ...


class Egress:
    """What a jail grants of the network.

    Args:
        rules: What may be reached.

    Raises:
        MissingExtra: The libraries of the extra `network` are not installed.
    """

    def __init__(self, rules: NetworkRules) -> None:
        from hatchway.transports.egress.authority import CertificateAuthority
        from hatchway.transports.egress.client import CheckedClient

        self.rules = rules
        self.authority: CertificateAuthority = CertificateAuthority()
        self._new_client = CheckedClient

    @property
    def environment(self) -> dict[str, str]:
        """What HTTP clients read to find the proxy and to believe it."""
        proxy = f"http://127.0.0.1:{PROXY_PORT}"
        names = [*_PROXY_VARIABLES, *(name.upper() for name in _PROXY_VARIABLES)]
        return {**dict.fromkeys(names, proxy), **dict.fromkeys(_CERTIFICATE_VARIABLES, CERTIFICATES)}

    @property
    def texts(self) -> dict[str, str]:
        """Files that are made in the jail, by path."""
        return {CERTIFICATES: self.authority.certificate}

    def gateway(self, listener: socket.socket) -> Gateway:
        """The proxy of one child, on the running loop."""
        return Gateway(listener, self.authority, self.rules, self._new_client(self.rules))


class Gateway:
    """The proxy of one child. Its requests are calls of `fetch` where the code has that, else made as they come.

    Args:
        listener: The listening socket in the child's net namespace.
        authority: Signs for the hosts.
        rules: What may be reached.
        client: Makes the requests that nobody else is asked about.
    """

    def __init__(
        self, listener: socket.socket, authority: CertificateAuthority, rules: NetworkRules, client: CheckedClient
    ) -> None:
        from hatchway.transports.egress.fetch import fetched
        from hatchway.transports.egress.proxy import EgressProxy

        self._rules, self._client, self._fetched = rules, client, fetched
        self._caller: Caller | None = None
        self._proxy = EgressProxy(listener, authority=authority, check_tunnel=self._check_tunnel, serve=self._serve)

    def serve_for(self, caller: Caller | None) -> None:
        """From here on requests belong to this action."""
        self._caller = caller

    def close(self) -> None:
        """End every connection. Legal twice."""
        self._proxy.close()

    async def _serve(self, arguments: Mapping[str, Any]) -> Any:
        caller = self._caller
        if caller is None or caller.is_over:
            await asyncio.sleep(IDLE_SECONDS)  # nothing counts these requests, so they are slow
            raise ToolDenied("the request is refused: no action is running")
        if caller.offers("fetch"):
            return await caller.call_beside("fetch", arguments)
        caller.count_call()
        return await self._fetched(self._client, **arguments)

    async def _check_tunnel(self, target: Target) -> None:
        try:
            self._rules.check_target(target)
        except ToolDenied:
            await self._tell(target)
            raise

    async def _tell(self, target: Target) -> None:
        """A refused host is seen by the gate too, and so is in the journal."""
        if self._caller is not None and self._caller.offers("fetch"):
            host = f"[{target.host}]" if ":" in target.host else target.host
            url = f"https://{host}:{target.port}/"
            try:
                await self._caller.call_beside("fetch", {"url": url, "method": "CONNECT", "follow_redirects": False})
            except ToolError:
                pass  # as it must be
