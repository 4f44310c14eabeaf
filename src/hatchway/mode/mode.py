"""CodeMode: run model-written code in a sandbox, every call through the gate."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from hatchway.core.decisions import ApproveCallback, Settlement, as_settlement
from hatchway.core.errors import InvalidSetting
from hatchway.core.events import AgentEvent
from hatchway.core.limits import DEFAULT_LIMITS, Limits
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeSandbox
from hatchway.gate.rules import Rule
from hatchway.mode.engine import Engine
from hatchway.mode.offer import Calls, Offer, own_tools
from hatchway.mode.run import Run
from hatchway.mode.session import ModeSession
from hatchway.mode.stream import streamed
from hatchway.mode.threads import ToolThreads
from hatchway.tools.functions import Tool

if TYPE_CHECKING:
    from hatchway.journal.store import Journal
    from hatchway.tools.mcp.servers import McpServers
    from hatchway.tools.search.discovery import Discovery, Finder


class CodeMode:
    """Runs code actions in a sandbox; each call they make to a tool passes the gate.

    Args:
        sandbox: An instance, or a registered name; `"auto"` is the strongest usable one, never an unsealed one.
            Modes on one name share one sandbox; an instance stays the caller's to close.
        tools: Plain functions and `Tool`s.
        approve: Sees every call that no rule settled and decides; without it, tools marked `ask` pause the run.
        rules: Stored permissions, see `Rule`.
        limits: Defaults for every run.
        journal: A path, `postgresql://…`, or a `Journal`: every step of a run is stored, and a run whose process died
            can be resumed by any other. None keeps runs in memory for as long as the mode lives.
        approval_seconds: How long people may take to decide; a decision after that counts as a denial.
        type_check: Check code against the tools' stubs before it runs, where the sandbox can.
        calls: `"declared"` keeps each tool's own style, `"async"` makes all of them `await tool(...)`, `"written"`
            lets each action choose: a tool it awaits is awaited there, another is just called.
        on_event: Sees every event of every run.
        mcp_servers: Entries as in `mcpServers` of a settings file; their tools are `server.tool(…)` in the code. An
            `McpServers` stays the caller's to close.
        mcp_notes: A folder where their lists are kept, `.hatchway/mcp` for example: a server known from there is
            offered without being started, and connected by its first call.
        discovery: `"basic"` or `"hybrid"`: the prompt names no tools but those that find the others; a `Finder` has
            settings of its own. None lists them all.

    Raises:
        InvalidTool: A tool cannot be offered as given, or two share a name.
        InvalidSetting: An unknown sandbox, or a setting that is not valid.
    """

    def __init__(
        self,
        sandbox: CodeSandbox | str = "auto",
        *,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        approve: ApproveCallback | None = None,
        rules: Iterable[Rule] = (),
        limits: Limits | None = None,
        journal: str | PathLike[str] | Journal | None = None,
        approval_seconds: float | None = None,
        type_check: bool = False,
        calls: Calls = "declared",
        on_event: Callable[[AgentEvent], None] | None = None,
        mcp_servers: Mapping[str, Any] | McpServers | None = None,
        mcp_notes: str | PathLike[str] | None = None,
        discovery: Discovery | Finder | None = None,
    ) -> None:
        _check(sandbox, approve, limits, approval_seconds)
        self.limits = limits or DEFAULT_LIMITS
        closing, threads = AsyncExitStack(), ToolThreads()
        offer = Offer(
            own_tools(tools, sandbox),
            rules=rules,
            threads=threads,
            asks_all=approve is not None,
            calls=calls,
            type_check=type_check,
            mcp_servers=None if mcp_servers is None else (mcp_servers, mcp_notes),
            discovery=discovery,
            closing=closing,
        )
        self._engine = Engine(
            sandbox,
            offer,
            approve=approve,
            emit=on_event or _nobody_listens,
            place=journal,
            approval_seconds=approval_seconds,
            threads=threads,
            closing=closing,
        )
        self._asks = approve is None

    async def run(
        self, code: str, *, inputs: Mapping[str, Any] | None = None, limits: Limits | None = None
    ) -> ExecutionResult:
        """Run an action from a fresh state.

        Raises:
            CodeExecutionError: The code failed, in one of its five ways.
            ApprovalRequired: It stands at calls that wait for a person; go on with `resume`.
            SandboxUnavailable, SandboxCrashed, TransportError: The host failed.
        """
        sandbox = await self._engine.open()
        return await self._engine.finished(self._engine.new_run(sandbox, limits or self.limits), code, inputs)

    async def stream(
        self, code: str, *, inputs: Mapping[str, Any] | None = None, limits: Limits | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run an action from a fresh state, giving each event as it happens.

        A call that must be asked about comes as `ApprovalRequest`, and the run goes on once it is answered. The last
        event is `CodeExecutionOutput`, or `RunFailed` when the code failed. Leaving the loop early kills the code.

        Raises:
            SandboxUnavailable, SandboxCrashed, TransportError: The host failed.
        """
        sandbox = await self._engine.open()
        async for event in streamed(
            self._engine.new_run(sandbox, limits or self.limits), code, inputs, asks=self._asks
        ):
            yield event

    @asynccontextmanager
    async def session(
        self, *, limits: Limits | None = None, session_id: str | None = None, is_new: bool = False
    ) -> AsyncGenerator[ModeSession, None]:
        """A kept interpreter: names, imports and functions persist from action to action.

        Args:
            limits: Defaults for its actions.
            session_id: Of a session in the journal (`ModeSession.session_id`): its actions are run again, their calls
                answered as they were, and it goes on from there.
            is_new: There is none of this id yet, and it is to have it.

        Raises:
            CheckpointRefused: No such session, its actions cannot be run again, or one of them has not ended.
            RunTaken: Somebody else has the session.
        """
        engine, limits = self._engine, limits or self.limits
        sandbox = await engine.open()
        durable = engine.durable
        if durable is None:
            if session_id is not None:
                raise InvalidSetting("a session can be had again only from a journal", hint="CodeMode(journal=…)")
            async with sandbox.session(limits=limits) as session:

                def new_run(given: Limits | None) -> Run:
                    return engine.new_run(session, given or limits)

                refresh = engine.offer.refresh
                yield ModeSession(new_run, engine.finished, refresh=refresh, asks=self._asks, state=session)
            return
        known = session_id or uuid.uuid4().hex
        async with durable.session(sandbox, known, limits, is_new=is_new or session_id is None) as (session, done):
            yield ModeSession(
                partial(durable.new, session, session_id=known),
                engine.finished,
                refresh=engine.offer.refresh,
                asks=self._asks,
                session_id=known,
                limits=limits,
                done=done,
                state=session,
            )

    async def resume(self, run_id: str, decisions: Mapping[str, bool | Settlement] | None = None) -> ExecutionResult:
        """Go on with a paused run, settling all or some of its pending calls.

        With a journal also a run whose process died, in whatever process; its calls are not made again. Resuming a
        finished run gives its result again and repeats nothing.

        Raises:
            ApprovalRequired: Calls are still undecided.
            InDoubt: A crash left calls of which nobody knows whether they ran: settle them with `Ran` or `NotRun`.
            UnknownRun: No such run.
            RunTaken: Somebody else drives it, or it is being resumed already.
            InvalidSetting: A decision for a call that is not pending, or one that does not fit it.
            CheckpointRefused: The paused execution cannot be restored. The code is not run again.
            CodeExecutionError: The code failed.
        """
        sandbox = await self._engine.open()
        settled = {call_id: as_settlement(decision) for call_id, decision in (decisions or {}).items()}
        return await self._engine.resumed(run_id, sandbox, settled)

    def prompt(self) -> str:
        """What a model must know to write code for this mode: the Python it may use and the tools it may call."""
        return self._engine.offer.prompt(self.sandbox.constraints)

    @property
    def tools(self) -> Mapping[str, Tool]:
        """What the code may call, by name; tools of MCP servers once the mode was entered."""
        return self._engine.offer.tools

    @property
    def sandbox(self) -> CodeSandbox:
        """The sandbox in use, once the mode was entered."""
        return self._engine.sandbox

    @property
    def journal(self) -> Journal:
        """The journal in use, once the mode was entered.

        Raises:
            RuntimeError: The mode has none, or was not entered.
        """
        if self._engine.durable is None:
            raise RuntimeError("the mode has no open journal: use `async with CodeMode(journal=…)`")
        return self._engine.durable.journal

    async def aclose(self) -> None:
        """Kill paused runs and give the sandbox back. Legal twice."""
        await self._engine.aclose()

    async def __aenter__(self) -> Self:
        try:
            await self._engine.open()
        except BaseException:
            await asyncio.shield(self.aclose())  # nobody leaves what was not entered: servers would stay connected
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _check(sandbox: Any, approve: Any, limits: Any, approval_seconds: Any) -> None:
    """Refuse at once what would be found out by the first call only."""
    if not isinstance(sandbox, str | CodeSandbox):
        raise InvalidSetting(f"a sandbox is a CodeSandbox or its name, not {sandbox!r:.80}", hint="CodeMode('auto')")
    if approve is not None and not callable(approve):
        raise InvalidSetting(f"approve is a function that takes a call, not {approve!r:.80}", hint="def approve(call)")
    if limits is not None and not isinstance(limits, Limits):
        raise InvalidSetting(f"limits takes Limits, not {limits!r:.80}", hint="Limits(wall_seconds=5)")
    if approval_seconds is not None and not (isinstance(approval_seconds, int | float) and approval_seconds > 0):
        raise InvalidSetting(f"approval_seconds is a number above 0, not {approval_seconds!r:.80}")


def _nobody_listens(event: AgentEvent) -> None:
    return None
