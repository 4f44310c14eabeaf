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

from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import ApproveCallback, Decision, Settlement, as_settlement
from hatchway.core.errors import ApprovalRequired, InvalidSetting
from hatchway.core.events import AgentEvent
from hatchway.core.limits import DEFAULT_LIMITS, Limits
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeSandbox, CodeSession
from hatchway.gate.approval import ask
from hatchway.gate.rules import Rule
from hatchway.journal.memory import MemoryJournal, RunRecord
from hatchway.mode.grants import Grants
from hatchway.mode.offer import Calls, Offer, own_tools
from hatchway.mode.run import Run
from hatchway.mode.session import ModeSession
from hatchway.mode.stream import streamed
from hatchway.mode.threads import ToolThreads
from hatchway.sandboxes.registry import shared_sandbox
from hatchway.tools.functions import Tool

if TYPE_CHECKING:
    from hatchway.journal.store import Journal
    from hatchway.mode.runs import DurableRuns
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
        self._closing = AsyncExitStack()
        self.limits = limits or DEFAULT_LIMITS
        self._given = sandbox
        self._sandbox: CodeSandbox | None = None
        self._approve = approve
        self._on_event = on_event
        self._journal = MemoryJournal()
        self._place = journal
        self._durable: DurableRuns | None = None
        self._opening = asyncio.Lock()
        self._approval_seconds = approval_seconds
        self._always: list[Rule] = []
        self._threads = ToolThreads()
        self._offer = Offer(
            own_tools(tools, sandbox),
            rules=rules,
            threads=self._threads,
            asks_all=approve is not None,
            calls=calls,
            type_check=type_check,
            mcp_servers=None if mcp_servers is None else (mcp_servers, mcp_notes),
            discovery=discovery,
            closing=self._closing,
        )

    async def run(
        self, code: str, *, inputs: Mapping[str, Any] | None = None, limits: Limits | None = None
    ) -> ExecutionResult:
        """Run an action from a fresh state.

        Raises:
            CodeExecutionError: The code failed, in one of its five ways.
            ApprovalRequired: It stands at calls that wait for a person; go on with `resume`.
            SandboxUnavailable, SandboxCrashed, TransportError: The host failed.
        """
        sandbox = await self._open()
        return await self._finished(self._new_run(sandbox, limits), code, inputs)

    async def stream(
        self, code: str, *, inputs: Mapping[str, Any] | None = None, limits: Limits | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run an action from a fresh state, giving each event as it happens.

        A call that must be asked about comes as `ApprovalRequest`, and the run goes on once it is answered. The last
        event is `CodeExecutionOutput`, or `RunFailed` when the code failed. Leaving the loop early kills the code.

        Raises:
            SandboxUnavailable, SandboxCrashed, TransportError: The host failed.
        """
        sandbox = await self._open()
        async for event in streamed(self._new_run(sandbox, limits), code, inputs, asks=self._approve is None):
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
        sandbox, limits = await self._open(), limits or self.limits
        durable = self._durable
        if durable is None:
            if session_id is not None:
                raise InvalidSetting("a session can be had again only from a journal", hint="CodeMode(journal=…)")
            async with sandbox.session(limits=limits) as session:
                new_run = partial(self._new_run, session)
                yield ModeSession(new_run, self._finished, asks=self._approve is None, state=session)
            return
        known = session_id or uuid.uuid4().hex
        async with durable.session(sandbox, known, limits, is_new=is_new or session_id is None) as (session, done):
            new_run = partial(durable.new, session, session_id=known)
            asks = self._approve is None
            yield ModeSession(
                new_run, self._finished, asks=asks, session_id=known, limits=limits, done=done, state=session
            )

    async def resume(self, run_id: str, decisions: Mapping[str, bool | Settlement] | None = None) -> ExecutionResult:
        """Go on with a paused run, settling all or some of its pending calls.

        With a journal also a run whose process died, in whatever process; its calls are not made again. Resuming a
        finished run gives its result again and repeats nothing.

        Raises:
            ApprovalRequired: Calls are still undecided.
            InDoubt: A crash left calls of which nobody knows whether they ran: settle them with `Ran` or `NotRun`.
            UnknownRun: No such run.
            RunTaken: Somebody else drives it.
            ValueError: A decision for a call that is not pending, or the run is being resumed already.
            CheckpointRefused: The paused execution cannot be restored. The code is not run again.
            CodeExecutionError: The code failed.
        """
        sandbox = await self._open()
        settled = {call_id: as_settlement(decision) for call_id, decision in (decisions or {}).items()}
        if self._durable is None:
            return await self._resumed_here(run_id, settled)
        outcome = await self._durable.resume(run_id, sandbox, settled)
        if isinstance(outcome, ExecutionResult):
            return outcome
        run, paused = outcome
        await self._durable.paused(run)
        raise ApprovalRequired(run.run_id, paused.pending)

    async def _resumed_here(self, run_id: str, settled: Mapping[str, Settlement]) -> ExecutionResult:
        record = self._journal.find(run_id)
        if record.result is not None:
            return record.result
        if record.error is not None:
            raise record.error
        _check_pending(record, settled)
        if not settled:
            raise ApprovalRequired(run_id, record.pending)
        return await self._resumed(record, settled)

    def prompt(self) -> str:
        """What a model must know to write code for this mode: the Python it may use and the tools it may call."""
        return self._offer.prompt(self.sandbox.constraints)

    @property
    def tools(self) -> Mapping[str, Tool]:
        """What the code may call, by name; tools of MCP servers once the mode was entered."""
        return self._offer.tools

    @property
    def sandbox(self) -> CodeSandbox:
        """The sandbox in use, once the mode was entered."""
        if self._sandbox is None:
            raise RuntimeError("the sandbox is chosen when the mode is entered: use `async with CodeMode(...)`")
        return self._sandbox

    @property
    def journal(self) -> Journal:
        """The journal in use, once the mode was entered.

        Raises:
            RuntimeError: The mode has none, or was not entered.
        """
        if self._durable is None:
            raise RuntimeError("the mode has no open journal: use `async with CodeMode(journal=…)`")
        return self._durable.journal

    async def aclose(self) -> None:
        """Kill paused runs and give the sandbox back. Legal twice."""
        for record in self._journal.paused():
            await record.live.abandon()
            record.live = None
        durable, self._durable = self._durable, None
        if durable is not None:
            await durable.close()
        self._threads.close()
        self._sandbox = None
        await self._closing.aclose()

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _open(self) -> CodeSandbox:
        await self._offer.refresh()
        if self._place is not None and self._durable is None:
            async with self._opening:
                self._durable = self._durable or await asyncio.to_thread(self._opened_journal, self._place)
        if self._sandbox is None:
            if isinstance(self._given, str):
                self._sandbox = await self._closing.enter_async_context(shared_sandbox(self._given))
            else:
                self._sandbox = self._given
            await asyncio.to_thread(_tier, self._sandbox)
        return self._sandbox

    def _opened_journal(self, place: str | PathLike[str] | Journal) -> DurableRuns:
        from hatchway.journal.store import Journal
        from hatchway.mode.durable import DurableRun, schema_digests
        from hatchway.mode.runs import DurableRuns

        journal = place if isinstance(place, Journal) else Journal(place)
        digests = schema_digests(self.tools)

        def make_run(where: CodeSandbox | CodeSession, limits: Limits, *, run_id: str, **settings: Any) -> DurableRun:
            common = self._common(where, limits, run_id) | settings
            return DurableRun(**common, store=journal, tools=digests, approval_seconds=self._approval_seconds)

        return DurableRuns(journal, make_run)

    def _new_run(self, where: CodeSandbox | CodeSession, limits: Limits | None) -> Run:
        if self._durable is not None:
            return self._durable.new(where, limits or self.limits)
        run_id = uuid.uuid4().hex
        return Run(**self._common(where, limits or self.limits, run_id))

    def _common(self, where: CodeSandbox | CodeSession, limits: Limits, run_id: str) -> dict[str, Any]:
        """What runs in memory and in a journal have in common."""
        return {
            "run_id": run_id,
            "sandbox": self.sandbox,
            "where": where,
            **self._offer.for_run(),
            "limits": limits,
            "ask": self._ask,
            "emit": self._on_event or _nobody_listens,
            "grants": Grants(self._always),
            "record": RunRecord(run_id=run_id) if self._durable else self._journal.open(run_id),
            "journal": self._journal,
        }

    async def _finished(self, run: Run, code: str, inputs: Mapping[str, Any] | None) -> ExecutionResult:
        """The result of a run from its start.

        Raises:
            ApprovalRequired: It paused instead.
        """
        outcome = await run.start(code, inputs)
        if isinstance(outcome, ExecutionResult):
            return outcome
        if self._durable is not None:
            await self._durable.paused(run)
        raise ApprovalRequired(run.run_id, outcome.pending)

    async def _resumed(self, record: RunRecord, decisions: Mapping[str, Settlement]) -> ExecutionResult:
        run: Run = record.live
        outcome = await run.resume(decisions)
        if isinstance(outcome, ExecutionResult):
            return outcome
        raise ApprovalRequired(record.run_id, outcome.pending)

    async def _ask(self, call: FunctionCall) -> Decision | None:
        return None if self._approve is None else await ask(self._approve, call, self._threads.run)


def _tier(sandbox: CodeSandbox) -> str:
    """The wall; the first jail of a process must try which one can be built, and the loop must not wait for that."""
    return sandbox.tier


def _nobody_listens(event: AgentEvent) -> None:
    return None


def _check_pending(record: RunRecord, decisions: Mapping[str, Settlement]) -> None:
    if record.state == "running":
        raise ValueError(f"run {record.run_id} is running: it can be resumed once at a time")
    pending = [call.call_id for call in record.pending]
    if strangers := [call_id for call_id in decisions if call_id not in pending]:
        raise ValueError(f"{', '.join(strangers)}: no such pending call; pending are {', '.join(pending)}")
