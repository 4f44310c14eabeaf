"""The server's tools over one mode: run code, find tools, decide, keep sessions."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.types import CallToolRequestParams, CallToolResult, EmptyResult, InputRequiredResult, ListToolsResult

from hatchway import __version__
from hatchway.adapters.mcp_server import answers
from hatchway.adapters.mcp_server.offers import EXECUTE, offers, schema
from hatchway.adapters.mcp_server.telling import (
    Context,
    Hearing,
    Telling,
    asked,
    can_ask,
    decision,
    has_person,
    questions,
)
from hatchway.core.decisions import Decision
from hatchway.core.errors import ApprovalRequired, HatchwayError, ToolError
from hatchway.core.events import AgentEvent, ApprovalRequest, CodeExecutionOutput, RunFailed
from hatchway.core.limits import Limits
from hatchway.mode.kept_sessions import KeptSessions
from hatchway.mode.mode import CodeMode
from hatchway.tools.functions import Tool
from hatchway.tools.search.discovery import Finder

MAX_SESSIONS = 20
"""Interpreters kept at once; past it the one used longest ago is closed."""


class McpFace:
    """An MCP server whose code runs in a mode. Entering it is cheap: the mode opens when a client first asks.

    Args:
        mode: Where code runs and what it may call; it is closed with the server.
        finder: Finds the mode's tools.
        hearing: What the mode was given as `on_event`.
        lists_all: The mode has no discovery: its prompt lists all tools, and the finder is told of them here.
    """

    def __init__(self, mode: CodeMode, finder: Finder, hearing: Hearing, *, lists_all: bool = False) -> None:
        self._mode, self._finder, self._hearing = mode, finder, hearing
        self._sessions = KeptSessions(mode, MAX_SESSIONS)
        self._opening = asyncio.Lock()
        self._is_open = False
        self._lists_all = lists_all
        self._known: Mapping[str, Tool] = {}
        self._checks = {
            name: _check(name) for name in (EXECUTE, "search_tools", "describe_tool", "resume", "close_session")
        }

    def server(self) -> Server[Any]:
        """The server, for one or many clients."""
        with warnings.catch_warnings(action="ignore", category=MCPDeprecationWarning):
            # newer clients ask for logs in each call; today's show them only where the capability is declared
            return Server(  # pyright: ignore[reportDeprecated]
                "hatchway",
                version=__version__,
                on_list_tools=self._list,
                on_call_tool=self._call,
                on_set_logging_level=self._set_level,
            )

    async def aclose(self) -> None:
        """Close sessions, mode and index."""
        await self._sessions.aclose()
        await self._mode.aclose()
        self._finder.close()

    async def _opened(self) -> CodeMode:
        async with self._opening:
            if not self._is_open:
                await self._mode.__aenter__()
                self._is_open = True
        if self._lists_all and self._mode.tools is not self._known:
            self._known = self._mode.tools
            self._finder.offer(self._known)
        return self._mode

    async def _list(self, context: Context, params: Any) -> ListToolsResult:
        mode = await self._opened()
        return ListToolsResult(tools=offers(mode.prompt()))

    async def _set_level(self, context: Context, params: Any) -> EmptyResult:
        return EmptyResult()

    async def _call(self, context: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        check = self._checks.get(params.name)
        if check is None:
            return answers.text(f"there is no tool {params.name!r}", is_error=True)
        try:
            given = check.bind((), params.arguments or {})
            await self._opened()
            if params.name == EXECUTE and params.request_state is not None:
                told = {call: decision(answer) for call, answer in (params.input_responses or {}).items()}
                return await self._resume(context, params.request_state, told)
            return await self._answer(context, params.name, given)
        except ApprovalRequired as e:
            return questions(e) if has_person(context) else answers.waiting(e)
        except ToolError as e:
            return answers.text(str(e), is_error=True)
        except HatchwayError as e:
            return answers.failed(e)

    async def _answer(self, context: Context, name: str, given: dict[str, Any]) -> CallToolResult:
        match name:
            case "execute_code":
                return await self._execute(context, given)
            case "search_tools":
                found = await asyncio.to_thread(self._finder.search, given["query"], given.get("limit", 5))
                return answers.text("\n".join(f"{each.name}: {each.summary}" for each in found) or "nothing found")
            case "describe_tool":
                return answers.text(self._finder.catalog.describe(given["name"]))
            case "resume":
                decisions = {call: word == "allow" for call, word in given["decisions"].items()}
                return await self._resume(context, given["run_id"], decisions)
            case _:
                await self._sessions.close(_key(context, given["session"]))
                return answers.text("closed")

    async def _resume(self, context: Context, run_id: str, decisions: Mapping[str, bool | Decision]) -> CallToolResult:
        try:
            async with self._hearing.heard_by(Telling(context)):
                return answers.done(await self._mode.resume(run_id, decisions))
        except ValueError as e:
            return answers.text(str(e), is_error=True)

    async def _execute(self, context: Context, given: dict[str, Any]) -> CallToolResult:
        timeout = given.get("timeout")
        limits = self._mode.limits if timeout is None else replace(self._mode.limits, wall_seconds=timeout)
        if given.get("session"):
            async with self._sessions.use(_key(context, given["session"])) as kept:
                return await self._run(context, kept.session, given["code"], limits)
        return await self._run(context, self._mode, given["code"], limits)

    async def _run(self, context: Context, where: Any, code: str, limits: Limits) -> CallToolResult:
        """Run the code, the client hearing of it; a client that cannot be asked gets calls that wait."""
        if not can_ask(context):
            async with self._hearing.heard_by(Telling(context)):
                return answers.done(await where.run(code, limits=limits))
        telling = Telling(context)
        events: AsyncGenerator[AgentEvent, None] = where.stream(code, limits=limits)
        async with aclosing(events):
            async for event in events:
                match event:
                    case ApprovalRequest():
                        event.approve(await asked(context, event))
                    case CodeExecutionOutput(result=result) if result is not None:
                        return answers.done(result)
                    case RunFailed(error=HatchwayError() as error):
                        return answers.failed(error)
                    case _:
                        await telling.tell(event)
        return answers.text("the run ended without a result", is_error=True)


def _check(name: str) -> Tool:
    """The arguments of a tool are checked as those of every tool are."""
    return Tool(name=name, parameters=schema(name), func=lambda: None)


def _key(context: Context, session: str) -> str:
    """A session of one client: others that know its name do not get it."""
    headers: Any = getattr(context.request, "headers", None)
    client = "" if headers is None else headers.get("mcp-session-id", "")
    return f"{client}/{session}"
