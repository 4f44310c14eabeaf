"""One MCP server: connected on first use, one connection for all, started again after a crash. Wraps the `mcp` SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import mcp.types as types
from mcp.client.client import Client
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolRequest, CallToolRequestParams, TaskMetadata
from pydantic import TypeAdapter
from pydantic_core import to_json

from hatchway.core.errors import ServerUnavailable, ToolError
from hatchway.tools.mcp.failures import ASKS_BACK, is_hung_up, refusal
from hatchway.tools.mcp.link import Link
from hatchway.tools.mcp.server_process import StartServer
from hatchway.tools.mcp.settings import ServerSettings
from hatchway.tools.mcp.tasks import finished

MAX_TOOLS = 10_000
"""Tools of one server; a list that goes on is cut here."""
_MAX_PAGES = 1000
_PROGRESS_TIMES = 10
"""How many times its timeout a call may take that tells of progress."""
_MAX_ROUNDS = 10
"""How often a server may ask for its call once more."""
Progress = Callable[[float, float | None, str | None], None]
"""Takes progress, total and message of a call."""
_AS_IT_CAME: Any = TypeAdapter(dict[str, Any])
"""The SDK has checked a result by then; its objects would only be made into dicts again."""


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
        self._link: Link | None = None
        self._opening = asyncio.Lock()
        self.starts = 0
        """How often it was connected."""

    async def tools(self) -> list[dict[str, Any]]:
        """What the server lists, by the names on the wire.

        Raises:
            ServerUnavailable: It cannot be reached, or does not answer as an MCP server.
        """
        link = await self._linked()
        try:
            async with asyncio.timeout(self.settings.connect_timeout):
                return await _listed(await asyncio.shield(link.client))
        except ServerUnavailable:
            raise
        except Exception as e:
            await self._ended(link)
            raise link.unavailable(e) from e

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        on_progress: Progress | None = None,
        *,
        is_task: bool = False,
    ) -> dict[str, Any]:
        """The result of a tool, by the names on the wire. Cancelling it cancels it on the server.

        Args:
            tool: Its own name.
            arguments: Checked.
            on_progress: Told of progress.
            is_task: The tool takes calls as tasks only.

        Raises:
            ToolError: The server refused the call, died, did not answer in time, or cannot be reached.
        """
        _check_text(arguments)
        link = self._link
        if link is None or not link.is_ready:
            try:
                link = await self._linked()
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
                params = CallToolRequestParams(name=tool, arguments=arguments, task=TaskMetadata() if is_task else None)
                return await _answer(link.client.result(), params, progressed)
        except TimeoutError:
            noise = link.pipes.noise() if link.pipes else ""
            told = "; ".join(
                part for part in (f"{self.name}.{tool} did not answer within {seconds:g} s", noise) if part
            )
            raise ToolError(told, hint=f'set "timeout" of server {self.name!r}') from None
        except ToolError:
            raise
        except Exception as e:
            raise await self._failed(link, e) from e

    async def aclose(self) -> None:
        """End the connection and the server's process. Legal twice; a later call connects anew."""
        link, self._link = self._link, None
        if link is not None:
            await link.aclose()

    async def _linked(self) -> Link:
        async with self._opening:
            if self._link is not None and self._link.is_over:
                await self.aclose()
            if self._link is None:
                self._link = Link(self.name, self.settings, self._start, self._on_changed)
                self.starts += 1
            link = self._link
        try:
            await asyncio.shield(link.client)
        except ServerUnavailable:
            link.leave()
            raise
        return link

    async def _failed(self, link: Link, error: Exception) -> ToolError:
        if isinstance(error, MCPError):
            if link.web is not None and link.web.is_forgotten:
                told = f"{refusal(error)} ({link.web.refusal()}); the server may have been started anew"
                return ToolError(told, hint="call it again: the connection is a new one then")
            if not is_hung_up(error):
                return ToolError(refusal(error))
            link.leave()
            heard = await self._ended(link) or "it said nothing"
            again = "the next call starts it anew; look first whether this one had an effect"
            return ToolError(f"the MCP server {self.name!r} died during the call; {heard}", hint=again)
        told = (refusal(error), link.web.refusal() if link.web else "")
        return ToolError("; ".join(part for part in told if part))

    async def _ended(self, link: Link) -> str:
        """What a server whose pipe broke said last; its end is waited for, so that there is something to tell."""
        if link.pipes is not None and link.pipes.is_over:
            await link.aclose()
        return link.last_words()


def _check_text(arguments: dict[str, Any]) -> None:
    """Refuse what no JSON carries: over HTTP the SDK would drop the connection for it, with the calls of others."""
    try:
        to_json(arguments)
    except (ValueError, RecursionError) as e:
        if "surrogates" in str(e):
            why = "it has half a character in it (a surrogate without its other half)"
            hint = 'text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") leaves that out'
        else:
            why, hint = str(e).removeprefix("Error serializing to JSON: "), "give bytes as text: base64"
        raise ToolError(f"an argument cannot be sent as JSON: {why}", hint=hint) from None


async def _listed(client: Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = None
    for _ in range(_MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += [each.model_dump(by_alias=True, exclude_none=True, mode="json") for each in page.tools]
        cursor = page.next_cursor
        if not cursor or len(found) >= MAX_TOOLS:
            break
    return found[:MAX_TOOLS]


async def _answer(client: Client, params: CallToolRequestParams, progressed: ProgressFnT) -> dict[str, Any]:
    """The result of one call; below the SDK's `call_tool`, which makes objects of it and checks the schema slowly."""
    for _ in range(_MAX_ROUNDS):
        send = partial(
            client.session.send_request, CallToolRequest(params=params), _AS_IT_CAME, progress_callback=progressed
        )
        try:
            result: dict[str, Any] = await send()
        except MCPError as e:
            if e.code != types.HEADER_MISMATCH:
                raise
            await _listed(client)  # some arguments go into headers as well, and which is in the list
            result = await send()
        if params.task is not None and "task" in result:
            return await finished(client, result, progressed)
        if result.get("resultType") != "input_required":
            return result
        params = params.model_copy(update={"request_state": result.get("requestState")})
        if result.get("inputRequests") or params.request_state is None:
            break
    raise ToolError(ASKS_BACK)
