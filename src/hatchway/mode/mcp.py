"""MCP servers of a mode: their commands run as children, or behind the jail's wall where their entry says so."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from os import PathLike
from typing import Any

from hatchway.core.errors import InvalidSetting
from hatchway.core.paths import path_rules
from hatchway.tools.mcp.server_process import ServerProcess, start_child
from hatchway.tools.mcp.servers import McpServers
from hatchway.tools.mcp.settings import SandboxSettings, StdioSettings


class Jails:
    """The jails of servers that have one, each made on first use and kept while the servers are."""

    def __init__(self) -> None:
        self._closing = AsyncExitStack()
        self._jails: dict[tuple[SandboxSettings, str], Any] = {}
        self._making = asyncio.Lock()

    async def start(self, name: str, settings: StdioSettings) -> ServerProcess:
        """Start a server's command, behind the wall if its entry has a `sandbox`.

        Raises:
            ServerUnavailable: There is no such program.
            InvalidSetting, SandboxUnavailable, SandboxCrashed: The jail cannot be built as it is described.
        """
        wall = settings.sandbox
        if wall is None:
            return await start_child(name, settings)
        from hatchway.sandboxes.jail.command_jail import COMMAND_LIMITS

        if settings.cwd is not None:
            raise InvalidSetting(f'MCP server {name!r}: in a sandbox it starts in "workdir", not in "cwd"')
        async with self._making:
            jail = self._jails.get((wall, name)) or await self._made(wall, name)
        limits = replace(COMMAND_LIMITS, memory_bytes=wall.memory_bytes)
        return await jail.start([settings.command, *settings.args], limits=limits, env=dict(settings.env))

    async def aclose(self) -> None:
        """Kill what still runs in them."""
        self._jails.clear()
        await self._closing.aclose()

    async def _made(self, wall: SandboxSettings, name: str) -> Any:
        from hatchway.sandboxes.jail.command_jail import CommandJail

        paths = path_rules(
            read=wall.read,
            write=wall.write,
            deny_read=wall.deny_read,
            deny_write=wall.deny_write,
            workdir=wall.workdir,
        )
        jail = CommandJail(
            tier=wall.tier, paths=paths, allowed_domains=wall.allowed_domains, denied_domains=wall.denied_domains
        )
        self._jails[wall, name] = await self._closing.enter_async_context(jail)
        return jail


class _OwnServers(McpServers):
    """Servers with the jails some of them run in."""

    def __init__(self, entries: Mapping[str, Any], notes: str | PathLike[str] | None) -> None:
        self._walls = Jails()
        super().__init__(entries, start=self._walls.start, notes=notes)

    async def aclose(self) -> None:
        """End all connections, then the jails."""
        await super().aclose()
        await self._walls.aclose()


def mcp_servers(
    given: Mapping[str, Any] | McpServers, *, notes: str | PathLike[str] | None = None
) -> tuple[McpServers, McpServers | None]:
    """The servers, and again those of them that were made here and are to be closed here.

    Args:
        given: Entries, or servers that are somebody's already.
        notes: As `McpServers` takes it.

    Raises:
        InvalidSetting: An entry is not valid, or variables it uses are not set.
    """
    if isinstance(given, McpServers):
        return given, None
    made = _OwnServers(given, notes)
    return made, made
