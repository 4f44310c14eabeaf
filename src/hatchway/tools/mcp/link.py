"""One life of a connection to a server: its transport, the SDK's client over it, and what it tells unasked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp.types import Implementation, ToolListChangedNotification
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from hatchway.core.errors import ServerUnavailable
from hatchway.tools.mcp.failures import unavailable
from hatchway.tools.mcp.mending import mended
from hatchway.tools.mcp.pipes import MAX_MESSAGE, Pipes
from hatchway.tools.mcp.server_process import StartServer
from hatchway.tools.mcp.settings import HttpSettings, ServerSettings, StdioSettings
from hatchway.tools.mcp.web import Web

logging.getLogger("mcp").addHandler(logging.NullHandler())
"""The SDK logs with tracebacks what our errors say; without a handler of its own that lands on people's screens."""
_OURSELVES = Implementation(name="hatchway", version="0.1.0")
_LISTEN_AGAIN_SECONDS = 5.0
"""Between two tries to hear of changes, where a server hangs up on those who listen."""


class Link:
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
        is_hung_up = (self.pipes is not None and self.pipes.is_over) or (self.web is not None and self.web.is_forgotten)
        return self._task.done() or self._leave.is_set() or is_hung_up

    @property
    def is_ready(self) -> bool:
        """Whether a call can be made without waiting."""
        return self.client.done() and not self.is_over

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
                await self._wait(client)
        except BaseException as e:
            if not self.client.done():
                self.client.set_exception(self.unavailable(e))
            if isinstance(e, asyncio.CancelledError):
                raise

    async def _wait(self, client: Client) -> None:
        listening = asyncio.create_task(self._listen(client))
        try:
            await self._leave.wait()
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _listen(self, client: Client) -> None:
        """Hear of changed tools where the protocol wants that asked for; older servers just tell (`_heard`)."""
        offered = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or offered is None or not offered.list_changed:
            return
        while True:
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._on_changed()
            except (MCPError, TimeoutError):
                return  # it declares what it does not do
            except SubscriptionLost:
                self._on_changed()  # nothing is told twice: what was missed is read anew
            await asyncio.sleep(_LISTEN_AGAIN_SECONDS)

    async def _transport(self, stack: AsyncExitStack) -> Any:
        match self._settings:
            case StdioSettings():
                self.pipes = Pipes(await self._start(self._name, self._settings))
                return self.pipes.streams()
            case HttpSettings(url=url):
                self.web = Web(self._settings)
                http = await stack.enter_async_context(self.web.client())
                return mended(streamable_http_client(url, http_client=http, max_sse_event_size=MAX_MESSAGE))

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
