"""The MCP servers of one host: their tools by name, listed when they are needed and again when they change."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchway.core.errors import MissingExtra, ServerUnavailable
from hatchway.tools.functions import Tool
from hatchway.tools.mcp.naming import as_namespace, unique
from hatchway.tools.mcp.notes import Notes, NotesFolder
from hatchway.tools.mcp.offered import Listing, offered
from hatchway.tools.mcp.seen import Seen
from hatchway.tools.mcp.server_process import StartServer, start_child
from hatchway.tools.mcp.settings import ServerSettings, server_settings

if TYPE_CHECKING:
    from hatchway.tools.mcp.connection import Connection

_LISTINGS = 3
"""How often a list is read anew that changes while it is read."""
_MOST_PATIENCE = 60.0
"""Seconds between two tries to list a server that cannot be had; the first one is made after a second."""
_log = logging.getLogger("hatchway")


class McpServers:
    """Servers by name. An async context manager: their connections and processes end with it.

    Args:
        entries: As in `mcpServers` of a settings file, or checked settings.
        start: Starts a server's command; by default as a child of this process.
        notes: A folder where lists are kept, and what tools were seen to give: a server that is known from there is
            offered without being started, and connected by its first call. None keeps nothing.

    Raises:
        InvalidSetting: An entry is not valid, or variables it uses are not set.
    """

    def __init__(
        self, entries: Mapping[str, Any], *, start: StartServer = start_child, notes: str | PathLike[str] | None = None
    ) -> None:
        self.settings: dict[str, ServerSettings] = server_settings(entries)
        """The entries, checked and filled in."""
        self.spaces = unique(self.settings, as_namespace)
        """The name in the code of each."""
        self._start = start
        self._connections: dict[str, Connection] = {}
        self._listings: dict[str, Listing] = {}
        self.problems: dict[str, str] = {}
        """Servers that cannot be had, and tools that are not offered as they came, with the reason."""
        self.on_changed: list[Callable[[], None]] = []
        """Told when a server's tools are others now, or gave something of a kind that was not seen before."""
        self.edition = 0
        """Counts the lists that were taken: whoever keeps tools of an older one reads them anew."""
        self._notes = None if notes is None else NotesFolder(Path(notes))
        self._listed: dict[str, Sequence[Mapping[str, Any]]] = {}
        self._seen: dict[str, Seen] = {}
        self._changes: Counter[str] = Counter()
        self._stale: set[str] = set()
        """Servers that said that their tools are others now."""
        self._looked: dict[str, int] = {}
        """Which life of a server its list is from; what is from the notes was not looked at yet."""
        self._patience: dict[str, tuple[float, float]] = {}
        """Servers that could not be listed: when to try again, and how many seconds were waited for that."""
        self._unkept: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_stale(self) -> bool:
        """Whether a server was never listed, or said that its tools are others now."""
        return any(name not in self._listings or name in self._stale for name in self._wanted())

    def away(self) -> tuple[str, ...]:
        """Servers that cannot be had and of which no tools are known, by their names in the code."""
        return tuple(self.spaces[name] for name in self.problems if name not in self._listings)

    def waiting(self) -> list[str]:
        """The servers that have not listed their tools yet."""
        return [name for name in self._wanted() if name not in self._listings]

    async def tools(self, *, fresh: bool = False) -> list[Tool]:
        """The tools of all servers, in the order of the settings; servers are asked only where that is needed.

        One that cannot be asked again keeps the tools it had: a call of them says what is wrong.

        Args:
            fresh: Ask those too that are known from the notes alone.

        Raises:
            ServerUnavailable: Servers that are not optional cannot be had; all of them are named.
            MissingExtra: The `mcp` package is not installed.
        """
        if fresh:
            for name in self._listings.keys() - self._looked.keys():
                del self._listings[name]
        else:
            await self._recall()
        asked = [name for name in self._wanted() if name not in self._listings or name in self._stale]
        outcomes = await asyncio.gather(*(self._list(name) for name in asked), return_exceptions=True)
        missing: list[ServerUnavailable] = []
        for name, outcome in zip(asked, outcomes, strict=True):
            if isinstance(outcome, ServerUnavailable):
                if name in self._listings or self.settings[name].optional:
                    self._missed(name, outcome)
                else:
                    missing.append(outcome)
            elif outcome is not None:
                raise outcome
        if missing:
            from hatchway.tools.mcp.failures import all_of  # the SDK takes a second to import

            raise all_of(missing)
        listed = (self._listings.get(name) for name in self.settings)
        return [tool for listing in listed if listing is not None for tool in listing.tools]

    def try_again(self) -> None:
        """Ask servers that could not be had, beside everything else and not too often; `edition` tells of success."""
        now = time.monotonic()
        for name, (at, waited) in self._patience.items():
            if at <= now:
                self._patience[name] = (float("inf"), waited)  # one try at a time
                self.beside(self._tried(name))

    def connection(self, name: str) -> Connection:
        """The connection of a server, made on first use."""
        if name not in self._connections:
            try:
                from hatchway.tools.mcp.connection import Connection  # the SDK takes a second to import
            except ImportError:
                raise MissingExtra("the MCP client", "mcp") from None
            changed = partial(self._changed, name)
            self._connections[name] = Connection(name, self.settings[name], self._start, changed)
        return self._connections[name]

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this beside everything else, until the servers are closed."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        """End all connections. Legal twice."""
        connections, self._connections = self._connections, {}
        self._listings.clear()
        self._patience.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for name in (*self._unkept,):
            await self._keep(name)
        await asyncio.gather(*(each.aclose() for each in connections.values()))

    async def __aenter__(self) -> McpServers:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.shield(self.aclose())

    def _wanted(self) -> list[str]:
        return [name for name in self.settings if name not in self._patience]

    async def _list(self, name: str) -> None:
        connection, listed = self.connection(name), []
        for _ in range(_LISTINGS):
            changes = self._changes[name]
            listed = await connection.tools()
            if changes == self._changes[name]:
                break
        self._take(name, listed)
        self._looked[name] = connection.starts
        await self._keep(name)

    async def _tried(self, name: str) -> None:
        try:
            await self._list(name)
        except ServerUnavailable as e:
            self._missed(name, e)
        else:
            self._tell()

    def _missed(self, name: str, error: ServerUnavailable) -> None:
        _, waited = self._patience.get(name, (0.0, 0.0))
        if name not in self._listings:
            self.problems[name] = str(error)
        if not waited:
            what = "without" if name in self.problems else "with the tools that are known of"
            _log.warning("going on %s the MCP server %s: %s", what, name, error)
        waited = min(2 * waited or 1.0, _MOST_PATIENCE)
        self._patience[name] = (time.monotonic() + waited, waited)

    async def _recall(self) -> None:
        """Take from the notes what is not listed yet."""
        unknown = [name for name in self.settings if name not in self._listings and name not in self._connections]
        if self._notes is None or not unknown:
            return
        for name in unknown:
            notes = await asyncio.to_thread(self._notes.read, name, self.settings[name])
            self._seen.setdefault(name, Seen(notes.seen))
            if notes.listed is not None:
                self._take(name, notes.listed)

    def _take(self, name: str, listed: Sequence[Mapping[str, Any]]) -> None:
        seen = self._seen.setdefault(name, Seen())
        call = partial(self._call, name)
        listing = offered(self.spaces[name], listed, self.settings[name], call, seen.schema, partial(self._look, name))
        self._listings[name], self._listed[name] = listing, listed
        self.edition += 1
        self._stale.discard(name)
        self.problems.pop(name, None)
        self._patience.pop(name, None)
        for problem in listing.problems:
            _log.warning("MCP server %s: %s", name, problem)

    async def _call(self, name: str, tool: str, arguments: dict[str, Any], is_task: bool) -> dict[str, Any]:
        connection = self.connection(name)
        result = await connection.call(tool, arguments, is_task=is_task)
        if self._looked.get(name) != connection.starts:
            self._looked[name] = connection.starts
            self.beside(self._verify(name))
        return result

    async def _verify(self, name: str) -> None:
        """Ask a server for its list that runs by now: what the notes had may be old, and a new start a new version."""
        try:
            listed = await self.connection(name).tools()
        except ServerUnavailable:
            return
        if listed != self._listed.get(name):
            self._take(name, listed)
            self._tell()
        await self._keep(name)

    def _look(self, name: str, tool: str, value: Any) -> None:
        if self._seen[name].look(tool, value):
            self._unkept.add(name)
            self.beside(self._keep(name))
            self._tell()

    async def _keep(self, name: str) -> None:
        if self._notes is not None:
            notes = Notes(listed=self._listed.get(name), seen=self._seen[name].told())
            await asyncio.to_thread(self._notes.write, name, self.settings[name], notes)
        self._unkept.discard(name)

    def _changed(self, name: str) -> None:
        self._changes[name] += 1
        self._stale.add(name)
        self._tell()

    def _tell(self) -> None:
        for each in self.on_changed:
            each()
