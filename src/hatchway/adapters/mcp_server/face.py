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
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    InputRequiredResult,
    ListToolsResult,
    LoggingLevel,
    SetLevelRequestParams,
)

from hatchway import __version__
from hatchway.adapters.mcp_server import answers
from hatchway.adapters.mcp_server.offers import EXECUTE, offers, schema, settlement
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
from hatchway.core.decisions import Settlement
from hatchway.core.errors import (
    ApprovalRequired,
    CheckpointRefused,
    CodeExecutionError,
    CodeLimitError,
    CodeTimeoutError,
    HatchwayError,
    InDoubt,
    InvalidSetting,
    SandboxCrashed,
    ToolError,
)
from hatchway.core.events import AgentEvent, ApprovalRequest, CodeExecutionOutput, RunFailed
from hatchway.core.limits import Limits
from hatchway.mode.kept_sessions import KeptSessions
from hatchway.mode.mode import CodeMode
from hatchway.mode.workbench import LOST
from hatchway.tools.functions import Tool
from hatchway.tools.search.discovery import Finder

MAX_SESSIONS = 20
"""Interpreters kept at once; past it the one used longest ago is closed."""
_MAX_LEVELS = 1000


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
        self._paused: dict[str, str] = {}
        """The run that waits for approval, by session."""
        self._levels: dict[str, LoggingLevel] = {}
        """Which log messages a client wants."""
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

    async def _set_level(self, context: Context, params: SetLevelRequestParams) -> EmptyResult:
        while len(self._levels) >= _MAX_LEVELS:
            self._levels.pop(next(iter(self._levels)))
        self._levels[_client(context)] = params.level
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
        except InDoubt as e:
            return answers.in_doubt(e)
        except ToolError as e:
            return answers.text(str(e), is_error=True)
        except HatchwayError as e:
            return answers.failed(e, _most(context))

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
                decisions = {call: settlement(said) for call, said in given["decisions"].items()}
                return await self._resume(context, given["run_id"], decisions)
            case _:
                key = _key(context, given["session"])
                self._paused.pop(key, None)
                await self._sessions.close(key)
                return answers.text("closed")

    async def _resume(
        self, context: Context, run_id: str, decisions: Mapping[str, bool | Settlement]
    ) -> CallToolResult:
        try:
            async with self._hearing.heard_by(self._telling(context)):
                result = await self._mode.resume(run_id, decisions)
        except InvalidSetting as e:
            return answers.text(str(e), is_error=True)
        except (CodeExecutionError, CheckpointRefused) as e:
            await self._ended(run_id, is_lost=isinstance(e, CodeTimeoutError | CodeLimitError))
            raise
        await self._ended(run_id)
        return answers.done(result, _most(context))

    async def _ended(self, run_id: str, *, is_lost: bool = False) -> None:
        """A run that had waited is over, and the interpreter of its session with it where that was killed."""
        for key in [key for key, waiting in self._paused.items() if waiting == run_id]:
            del self._paused[key]
            if is_lost:
                await self._sessions.close(key)

    def _telling(self, context: Context) -> Telling:
        return Telling(context, level=self._levels.get(_client(context), "info"))

    async def _execute(self, context: Context, given: dict[str, Any]) -> CallToolResult:
        timeout = given.get("timeout")
        limits = self._mode.limits if timeout is None else replace(self._mode.limits, wall_seconds=timeout)
        if given.get("session"):
            return await self._in_session(context, given["session"], given["code"], limits)
        return await self._run(context, self._mode, given["code"], limits)

    async def _in_session(self, context: Context, name: str, code: str, limits: Limits) -> CallToolResult:
        key = _key(context, name)
        async with self._sessions.use(key) as kept:
            if (waiting := self._paused.get(key)) is not None:
                raise ToolError(
                    f"session {name!r} stands at run {waiting}, which waits for approval",
                    hint="call resume with decisions about that run, or close_session",
                )
            try:
                return await self._run(context, kept.session, code, limits)
            except ApprovalRequired as e:
                self._paused[key] = e.run_id
                raise
            except (CodeTimeoutError, CodeLimitError, SandboxCrashed) as e:
                kept.is_lost = True
                e.message = f"{e.message}\n{LOST}"
                raise
            except asyncio.CancelledError:
                kept.is_lost = True
                raise

    async def _run(self, context: Context, where: Any, code: str, limits: Limits) -> CallToolResult:
        """Run the code, the client hearing of it; a client that cannot be asked gets calls that wait."""
        if not can_ask(context):
            async with self._hearing.heard_by(self._telling(context)):
                return answers.done(await where.run(code, limits=limits), _most(context))
        telling = self._telling(context)
        events: AsyncGenerator[AgentEvent, None] = where.stream(code, limits=limits)
        async with aclosing(events):
            async for event in events:
                match event:
                    case ApprovalRequest():
                        event.approve(await asked(context, event))
                    case CodeExecutionOutput(result=result) if result is not None:
                        return answers.done(result, _most(context))
                    case RunFailed(error=HatchwayError() as error):
                        raise error
                    case _:
                        await telling.tell(event)
        return answers.text("the run ended without a result", is_error=True)


def _check(name: str) -> Tool:
    """The arguments of a tool are checked as those of every tool are."""
    return Tool(name=name, parameters=schema(name), func=lambda: None)


def _key(context: Context, session: str) -> str:
    """A session of one client: others that know its name do not get it."""
    return f"{_client(context)}/{session}"


def _most(context: Context) -> int:
    """Bytes of files one answer may carry."""
    return answers.MAX_FILES if context.request is None else answers.MAX_FILES_OF_EVENT


def _client(context: Context) -> str:
    headers: Any = getattr(context.request, "headers", None)
    return "" if headers is None else headers.get("mcp-session-id", "")
