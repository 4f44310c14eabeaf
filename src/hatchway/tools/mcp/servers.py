"""The MCP servers of one host: their tools by name, listed when they are needed and again when they change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from hatchway.core.errors import MissingExtra, ServerUnavailable
from hatchway.tools.functions import Tool
from hatchway.tools.mcp.naming import as_namespace, unique
from hatchway.tools.mcp.offered import Listing, offered
from hatchway.tools.mcp.server_process import StartServer, start_child
from hatchway.tools.mcp.settings import ServerSettings, server_settings

if TYPE_CHECKING:
    from hatchway.tools.mcp.connection import Connection

_log = logging.getLogger("hatchway")


class McpServers:
    """Servers by name. An async context manager: their connections and processes end with it.

    Args:
        entries: As in `mcpServers` of a settings file, or checked settings.
        start: Starts a server's command; by default as a child of this process.

    Raises:
        InvalidSetting: An entry is not valid, or variables it uses are not set.
    """

    def __init__(self, entries: Mapping[str, Any], *, start: StartServer = start_child) -> None:
        self.settings: dict[str, ServerSettings] = server_settings(entries)
        """The entries, checked and filled in."""
        self.spaces = unique(self.settings, as_namespace)
        """The name in the code of each."""
        self._start = start
        self._connections: dict[str, Connection] = {}
        self._listings: dict[str, Listing] = {}
        self.problems: dict[str, str] = {}
        """Servers that cannot be had, and tools that are not offered as they came, with the reason."""

    @property
    def is_stale(self) -> bool:
        """Whether a server was never listed, or said that its tools are others now."""
        return any(name not in self._listings for name in self.settings if name not in self.problems)

    def waiting(self) -> list[str]:
        """The servers that have not listed their tools yet."""
        return [name for name in self.settings if name not in self._listings and name not in self.problems]

    async def tools(self) -> list[Tool]:
        """The tools of all servers, in the order of the settings; servers are asked only where that is needed.

        Raises:
            ServerUnavailable: A server that is not optional cannot be had.
            MissingExtra: The `mcp` package is not installed.
        """
        asked = [name for name in self.settings if name not in self._listings]
        outcomes = await asyncio.gather(*(self._list(name) for name in asked), return_exceptions=True)
        for name, outcome in zip(asked, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                if not (isinstance(outcome, ServerUnavailable) and self.settings[name].optional):
                    raise outcome
                self.problems[name] = str(outcome)
                _log.warning("going on without the MCP server %s: %s", name, outcome)
        listed = (self._listings.get(name) for name in self.settings)
        return [tool for listing in listed if listing is not None for tool in listing.tools]

    def connection(self, name: str) -> Connection:
        """The connection of a server, made on first use."""
        if name not in self._connections:
            try:
                from hatchway.tools.mcp.connection import Connection  # the SDK takes a second to import
            except ImportError:
                raise MissingExtra("the MCP client", "mcp") from None
            forget = partial(self._listings.pop, name, None)
            self._connections[name] = Connection(name, self.settings[name], self._start, lambda: forget() and None)
        return self._connections[name]

    async def aclose(self) -> None:
        """End all connections. Legal twice."""
        connections, self._connections = self._connections, {}
        self._listings.clear()
        await asyncio.gather(*(each.aclose() for each in connections.values()))

    async def __aenter__(self) -> McpServers:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.shield(self.aclose())

    async def _list(self, name: str) -> None:
        listed = await self.connection(name).tools()
        listing = offered(self.spaces[name], listed, self.settings[name], partial(self._call, name))
        self._listings[name] = listing
        self.problems.pop(name, None)
        for problem in listing.problems:
            _log.warning("MCP server %s: %s", name, problem)

    async def _call(self, name: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return await self.connection(name).call(tool, arguments)
