"""One MCP server: connected on first use, one connection for all, started again after a crash. Wraps the `mcp` SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import mcp.types as types
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import Implementation, ToolListChangedNotification

from hatchway.core.errors import ServerUnavailable, ToolError
from hatchway.tools.mcp.failures import refusal, unavailable
from hatchway.tools.mcp.pipes import Pipes
from hatchway.tools.mcp.server_process import StartServer
from hatchway.tools.mcp.settings import HttpSettings, ServerSettings, StdioSettings
from hatchway.tools.mcp.web import Web

MAX_TOOLS = 10_000
"""Tools of one server; a list that goes on is cut here."""
_MAX_PAGES = 1000
_PROGRESS_TIMES = 10
"""How many times its timeout a call may take that tells of progress."""
Progress = Callable[[float, float | None, str | None], None]
"""Takes progress, total and message of a call."""


class _Link:
    """One life of a connection. A task of its own holds it open: the SDK's scopes are left where they were entered."""

    def __init__(self, name: str, settings: ServerSettings, start: StartServer, on_changed: Callable[[], None]) -> None:
        self._name, self._settings, self._start, self._on_changed = name, settings, start, on_changed
        self.pipes: Pipes | None = None
        self.web: Web | None = None
        self.client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._leave = asyncio.Event()
        self._task = asyncio.create_task(self._hold(), name=f"mcp server {name}")

    @property
    def is_over(self) -> bool:
        """Whether calls need another one."""
        return self._task.done() or self._leave.is_set() or (self.pipes is not None and self.pipes.is_over)

    def leave(self) -> None:
        """Close it soon."""
        self._leave.set()

    async def aclose(self) -> None:
        """Close it; its process is gone when this returns."""
        self._leave.set()
        if not self.client.done():
            self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self.client.done() and not self.client.cancelled():
            self.client.exception()  # it was told, or nobody is left to be told

    async def _hold(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                transport = await self._transport(stack)
                client = Client(transport, message_handler=self._heard, client_info=_OURSELVES, cache=None)
                async with asyncio.timeout(self._settings.connect_timeout):
                    await stack.enter_async_context(client)
                self.client.set_result(client)
                await self._leave.wait()
        except BaseException as e:
            if not self.client.done():
                self.client.set_exception(self.unavailable(e))
            if isinstance(e, asyncio.CancelledError):
                raise

    async def _transport(self, stack: AsyncExitStack) -> Any:
        match self._settings:
            case StdioSettings():
                self.pipes = Pipes(await self._start(self._name, self._settings))
                return self.pipes.streams()
            case HttpSettings(url=url):
                self.web = Web(self._settings)
                return streamable_http_client(url, http_client=await stack.enter_async_context(self.web.client()))

    async def _heard(self, message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._on_changed()

    def unavailable(self, error: BaseException) -> ServerUnavailable:
        """The error that says why this server cannot be had."""
        hint = "" if self.web is None else self.web.hint()
        return unavailable(self._name, self._settings, error, self.last_words(), hint)

    def last_words(self) -> str:
        """What the server said last."""
        return self.pipes.last_words() if self.pipes else self.web.refusal() if self.web else ""


_OURSELVES = Implementation(name="hatchway", version="0.1.0")


class Connection:
    """A server as its tools see it.

    Args:
        name: Its name in the settings.
        settings: Its entry.
        start: Starts its command, where it has one.
        on_changed: Told when the server says that its tools are others now.
    """

    def __init__(self, name: str, settings: ServerSettings, start: StartServer, on_changed: Callable[[], None]) -> None:
        self.name, self.settings = name, settings
        self._start, self._on_changed = start, on_changed
        self._link: _Link | None = None
        self._opening = asyncio.Lock()
        self.starts = 0
        """How often it was connected."""

    async def tools(self) -> list[dict[str, Any]]:
        """What the server lists, by the names on the wire.

        Raises:
            ServerUnavailable: It cannot be reached, or does not answer as an MCP server.
        """
        link = await self._linked()
        found: list[dict[str, Any]] = []
        try:
            async with asyncio.timeout(self.settings.connect_timeout):
                client, cursor = await asyncio.shield(link.client), None
                for _ in range(_MAX_PAGES):
                    page = await client.list_tools(cursor=cursor)
                    found += [each.model_dump(by_alias=True, exclude_none=True, mode="json") for each in page.tools]
                    cursor = page.next_cursor
                    if not cursor or len(found) >= MAX_TOOLS:
                        break
        except ServerUnavailable:
            raise
        except Exception as e:
            await self._ended(link)
            raise link.unavailable(e) from e
        return found[:MAX_TOOLS]

    async def call(self, tool: str, arguments: dict[str, Any], on_progress: Progress | None = None) -> dict[str, Any]:
        """The result of a tool, by the names on the wire. Cancelling it cancels it on the server.

        Raises:
            ToolError: The server refused the call, died, did not answer in time, or cannot be reached.
        """
        try:
            link = await self._linked()
            client = await asyncio.shield(link.client)
        except ServerUnavailable as e:
            raise ToolError(e.message, hint=e.hint) from e
        seconds, loop = self.settings.timeout, asyncio.get_running_loop()
        latest = loop.time() + _PROGRESS_TIMES * seconds
        deadline = asyncio.timeout(seconds)

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            if not deadline.expired():
                deadline.reschedule(min(loop.time() + seconds, latest))
            if on_progress is not None:
                on_progress(progress, total, message)

        try:
            async with deadline:
                result = await client.call_tool(tool, arguments, progress_callback=progressed)
        except TimeoutError:
            raise ToolError(
                f"{self.name}.{tool} did not answer within {seconds:g} s", hint=f'set "timeout" of server {self.name!r}'
            ) from None
        except MCPError as e:
            if e.code != types.CONNECTION_CLOSED:
                raise ToolError(refusal(e)) from e
            link.leave()
            raise ToolError(f"the MCP server {self.name!r} died during the call; {await self._ended(link)}") from e
        except Exception as e:
            raise ToolError(
                "; ".join(part for part in (refusal(e), link.web.refusal() if link.web else "") if part)
            ) from e
        return result.model_dump(by_alias=True, exclude_none=True, mode="json")

    async def aclose(self) -> None:
        """End the connection and the server's process. Legal twice; a later call connects anew."""
        link, self._link = self._link, None
        if link is not None:
            await link.aclose()

    async def _linked(self) -> _Link:
        async with self._opening:
            if self._link is not None and self._link.is_over:
                await self.aclose()
            if self._link is None:
                self._link = _Link(self.name, self.settings, self._start, self._on_changed)
                self.starts += 1
            link = self._link
        try:
            await asyncio.shield(link.client)
        except ServerUnavailable:
            link.leave()
            raise
        return link

    async def _ended(self, link: _Link) -> str:
        """What a server whose pipe broke said last; its end is waited for, so that there is something to tell."""
        if link.pipes is not None and link.pipes.is_over:
            await link.aclose()
        return link.last_words()
