"""CodeMode: run model-written code in a sandbox, every call through the gate."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any, Literal, Self

from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import ApproveCallback, Decision, as_decision
from hatchway.core.errors import ApprovalRequired, InvalidSetting
from hatchway.core.events import AgentEvent
from hatchway.core.limits import DEFAULT_LIMITS, Limits
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeSandbox, CodeSession
from hatchway.gate.approval import ask
from hatchway.gate.rules import Rule
from hatchway.journal.memory import MemoryJournal, RunRecord
from hatchway.mode.passage import Passage
from hatchway.mode.prompt import build_code_mode_prompt
from hatchway.mode.run import Run
from hatchway.mode.session import ModeSession, finished
from hatchway.mode.stream import streamed
from hatchway.mode.threads import ToolThreads
from hatchway.sandboxes.registry import shared_sandbox
from hatchway.tools.functions import Tool, as_tools
from hatchway.tools.stubs import render_stubs


class CodeMode:
    """Runs code actions in a sandbox; each call they make to a tool passes the gate.

    Args:
        sandbox: An instance, or a registered name; `"auto"` is the strongest usable one, never an unsealed one.
            Modes on one name share one sandbox; an instance stays the caller's to close.
        tools: Plain functions and `Tool`s.
        approve: Sees every call that no rule settled and decides; without it, tools marked `ask` pause the run.
        rules: Stored permissions, see `Rule`.
        limits: Defaults for every run.
        journal: None keeps runs in memory for as long as the mode lives.
        type_check: Check code against the tools' stubs before it runs, where the sandbox can.
        calls: `"declared"` keeps each tool's own style, `"async"` makes all of them `await tool(...)`.
        on_event: Sees every event of every run.

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
        journal: None = None,
        type_check: bool = False,
        calls: Literal["declared", "async"] = "declared",
        on_event: Callable[[AgentEvent], None] | None = None,
    ) -> None:
        if journal is not None:
            raise InvalidSetting("this version keeps runs in memory: leave journal=None")
        if calls not in ("declared", "async"):
            raise InvalidSetting(f"calls is 'declared' or 'async', not {calls!r}")
        self.tools = _with_fetch(as_tools(tools), sandbox)
        self.limits = limits or DEFAULT_LIMITS
        self._given = sandbox
        self._sandbox: CodeSandbox | None = None
        self._approve = approve
        self._type_check = type_check
        self._on_event = on_event
        self._journal = MemoryJournal()
        self._threads = ToolThreads()
        self._passage = Passage(self.tools, tuple(rules), self._threads, asks_all=approve is not None)
        self._signatures = tuple(tool.signature(style=calls) for tool in self.tools.values())
        self._stubs = render_stubs(self.tools.values(), calls)
        self._closing = AsyncExitStack()

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
        return await finished(self._new_run(sandbox, limits), code, inputs)

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
    async def session(self, *, limits: Limits | None = None) -> AsyncGenerator[ModeSession, None]:
        """A kept interpreter: names, imports and functions persist from action to action."""
        sandbox = await self._open()
        async with sandbox.session(limits=limits or self.limits) as session:
            yield ModeSession(lambda limits: self._new_run(session, limits), asks=self._approve is None)

    async def resume(self, run_id: str, decisions: Mapping[str, bool | Decision] | None = None) -> ExecutionResult:
        """Go on with a paused run, settling all or some of its pending calls.

        Resuming a finished run gives its result again and repeats nothing.

        Raises:
            ApprovalRequired: Calls are still undecided.
            UnknownRun: No such run.
            ValueError: A decision for a call that is not pending, or the run is being resumed already.
            CheckpointRefused: The paused execution cannot be restored. The code is not run again.
            CodeExecutionError: The code failed.
        """
        record = self._journal.find(run_id)
        if record.result is not None:
            return record.result
        if record.error is not None:
            raise record.error
        settled = {call_id: as_decision(decision) for call_id, decision in (decisions or {}).items()}
        _check_pending(record, settled)
        if not settled:
            raise ApprovalRequired(run_id, record.pending)
        return await self._resumed(record, settled)

    def prompt(self) -> str:
        """What a model must know to write code for this mode: the Python it may use and the tools it may call."""
        if self._sandbox is None:
            raise RuntimeError("the sandbox is chosen when the mode is entered: use `async with CodeMode(...)`")
        return build_code_mode_prompt(signatures=[self._stubs], constraints=self._sandbox.constraints)

    @property
    def sandbox(self) -> CodeSandbox:
        """The sandbox in use, once the mode was entered."""
        if self._sandbox is None:
            raise RuntimeError("the sandbox is chosen when the mode is entered: use `async with CodeMode(...)`")
        return self._sandbox

    async def aclose(self) -> None:
        """Kill paused runs and give the sandbox back. Legal twice."""
        for record in self._journal.paused():
            await record.live.abandon()
            record.live = None
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
        if self._sandbox is None:
            if isinstance(self._given, str):
                self._sandbox = await self._closing.enter_async_context(shared_sandbox(self._given))
            else:
                self._sandbox = self._given
        return self._sandbox

    def _new_run(self, where: CodeSandbox | CodeSession, limits: Limits | None) -> Run:
        run_id = uuid.uuid4().hex
        return Run(
            run_id=run_id,
            sandbox=self.sandbox,
            where=where,
            passage=self._passage,
            signatures=self._signatures,
            stubs=self._stubs if self._type_check else None,
            limits=limits or self.limits,
            ask=self._ask,
            emit=self._on_event or _nobody_listens,
            record=self._journal.open(run_id),
            journal=self._journal,
        )

    async def _resumed(self, record: RunRecord, decisions: Mapping[str, Decision]) -> ExecutionResult:
        run: Run = record.live
        outcome = await run.resume(decisions)
        if isinstance(outcome, ExecutionResult):
            return outcome
        raise ApprovalRequired(record.run_id, outcome.pending)

    async def _ask(self, call: FunctionCall) -> Decision | None:
        return None if self._approve is None else await ask(self._approve, call, self._threads.run)


def _with_fetch(tools: dict[str, Tool], sandbox: CodeSandbox | str) -> dict[str, Tool]:
    """A sandbox that was granted domains offers `fetch`, unless the tools have one of that name."""
    if isinstance(sandbox, str) or not sandbox.network.allowed or "fetch" in tools:
        return tools
    from hatchway.mode.fetch import fetch_tool

    return {**tools, "fetch": fetch_tool(sandbox.network)}


def _nobody_listens(event: AgentEvent) -> None:
    return None


def _check_pending(record: RunRecord, decisions: Mapping[str, Decision]) -> None:
    if record.state == "running":
        raise ValueError(f"run {record.run_id} is running: it can be resumed once at a time")
    pending = [call.call_id for call in record.pending]
    if strangers := [call_id for call_id in decisions if call_id not in pending]:
        raise ValueError(f"{', '.join(strangers)}: no such pending call; pending are {', '.join(pending)}")
