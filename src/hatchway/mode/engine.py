"""Engine: what a mode has open (its sandbox, its journal), the runs it makes there, and those that paused."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from contextlib import AsyncExitStack
from os import PathLike
from typing import TYPE_CHECKING, Any

from hatchway.core.calls import FunctionCall, no_such_call
from hatchway.core.decisions import ApproveCallback, Decision, NotRun, Ran, Settlement
from hatchway.core.errors import ApprovalRequired, InvalidSetting, RunTaken
from hatchway.core.events import Emit
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeSandbox, CodeSession
from hatchway.gate.approval import ask
from hatchway.gate.rules import Rule
from hatchway.journal.memory import MemoryJournal, RunRecord
from hatchway.mode.grants import Grants
from hatchway.mode.offer import Offer
from hatchway.mode.run import Run
from hatchway.mode.threads import ToolThreads
from hatchway.sandboxes.registry import shared_sandbox
from hatchway.tools.functions import Tool

if TYPE_CHECKING:
    from hatchway.journal.store import Journal
    from hatchway.mode.runs import DurableRuns


class Engine:
    """Makes runs, and knows those that wait.

    Args:
        given: The sandbox, or its name.
        offer: What the code may call.
        approve: Decides about calls that no rule settled.
        emit: Sees every event.
        place: The journal, or where it is; None keeps runs in memory.
        approval_seconds: How long people may take to decide.
        threads: Where blocking tools run.
        closing: What is given back at the end.
    """

    def __init__(
        self,
        given: CodeSandbox | str,
        offer: Offer,
        *,
        approve: ApproveCallback | None,
        emit: Emit,
        place: str | PathLike[str] | Journal | None,
        approval_seconds: float | None,
        threads: ToolThreads,
        closing: AsyncExitStack,
    ) -> None:
        self._given = given
        self.offer = offer
        self._approve = approve
        self._emit = emit
        self._place = place
        self._approval_seconds = approval_seconds
        self._threads = threads
        self._closing = closing
        self._sandbox: CodeSandbox | None = None
        self._memory = MemoryJournal()
        self.durable: DurableRuns | None = None
        """The runs of the journal, once it is open; None without one."""
        self._opening = asyncio.Lock()
        self._always: list[Rule] = []
        self._digested: tuple[Mapping[str, Tool], dict[str, str]] = ({}, {})

    @property
    def sandbox(self) -> CodeSandbox:
        """The sandbox in use, once it was opened."""
        if self._sandbox is None:
            raise RuntimeError("the sandbox is chosen when the mode is entered: use `async with CodeMode(...)`")
        return self._sandbox

    async def open(self) -> CodeSandbox:
        """The sandbox in use; it and the journal are opened by the first who asks.

        Raises:
            InvalidSetting, SandboxUnavailable: There is no such sandbox here.
            JournalError: The journal cannot be opened.
        """
        await self.offer.refresh()
        if self._place is not None and self.durable is None:
            async with self._opening:
                self.durable = self.durable or await asyncio.to_thread(self._opened_journal, self._place)
        if self._sandbox is None:
            if isinstance(self._given, str):
                self._sandbox = await self._closing.enter_async_context(shared_sandbox(self._given))
            else:
                self._sandbox = self._given
            await asyncio.to_thread(_tier, self._sandbox)
        return self._sandbox

    def new_run(self, where: CodeSandbox | CodeSession, limits: Limits) -> Run:
        """A run about to start."""
        if self.durable is not None:
            return self.durable.new(where, limits)
        run_id = uuid.uuid4().hex
        return Run(**self._common(where, limits, run_id))

    async def finished(self, run: Run, code: str, inputs: Mapping[str, Any] | None) -> ExecutionResult:
        """The result of a run from its start.

        Raises:
            ApprovalRequired: It paused instead.
        """
        outcome = await run.start(code, inputs)
        if isinstance(outcome, ExecutionResult):
            return outcome
        if self.durable is not None:
            await self.durable.paused(run)
        raise ApprovalRequired(run.run_id, outcome.pending)

    async def resumed(self, run_id: str, sandbox: CodeSandbox, settled: Mapping[str, Settlement]) -> ExecutionResult:
        """The result of a run that paused, or whose process died; see `CodeMode.resume`."""
        if self.durable is None:
            return await self._resumed_here(run_id, settled)
        outcome = await self.durable.resume(run_id, sandbox, settled)
        if isinstance(outcome, ExecutionResult):
            return outcome
        run, paused = outcome
        await self.durable.paused(run)
        raise ApprovalRequired(run.run_id, paused.pending)

    async def aclose(self) -> None:
        """Kill paused runs and give the sandbox back. Legal twice."""
        for record in self._memory.paused():
            await record.live.abandon()
            record.live = None
        durable, self.durable = self.durable, None
        if durable is not None:
            await durable.close()
        self._threads.close()
        self._sandbox = None
        await self._closing.aclose()

    async def _resumed_here(self, run_id: str, settled: Mapping[str, Settlement]) -> ExecutionResult:
        record = self._memory.find(run_id)
        if record.result is not None:
            return record.result
        if record.error is not None:
            raise record.error
        _check_pending(record, settled)
        if not settled:
            raise ApprovalRequired(run_id, record.pending)
        outcome = await record.live.resume(settled)
        if isinstance(outcome, ExecutionResult):
            return outcome
        raise ApprovalRequired(record.run_id, outcome.pending)

    def _opened_journal(self, place: str | PathLike[str] | Journal) -> DurableRuns:
        from hatchway.journal.store import Journal
        from hatchway.mode.durable import DurableRun
        from hatchway.mode.runs import DurableRuns

        journal = place if isinstance(place, Journal) else Journal(place)

        def make_run(where: CodeSandbox | CodeSession, limits: Limits, *, run_id: str, **settings: Any) -> DurableRun:
            common = self._common(where, limits, run_id) | settings
            return DurableRun(**common, store=journal, tools=self._digests(), approval_seconds=self._approval_seconds)

        return DurableRuns(journal, make_run)

    def _digests(self) -> dict[str, str]:
        """Of the tools as they are offered now: servers may bring others while the journal is open."""
        from hatchway.mode.durable import schema_digests

        tools = self.offer.tools
        if self._digested[0] is not tools:
            self._digested = (tools, schema_digests(tools))
        return self._digested[1]

    def _common(self, where: CodeSandbox | CodeSession, limits: Limits, run_id: str) -> dict[str, Any]:
        """What runs in memory and in a journal have in common."""
        return {
            "run_id": run_id,
            "sandbox": self.sandbox,
            "where": where,
            **self.offer.for_run(),
            "limits": limits,
            "ask": self._ask,
            "emit": self._emit,
            "grants": Grants(self._always),
            "record": RunRecord(run_id=run_id) if self.durable else self._memory.open(run_id),
            "journal": self._memory,
        }

    async def _ask(self, call: FunctionCall) -> Decision | None:
        return None if self._approve is None else await ask(self._approve, call, self._threads.run)


def _tier(sandbox: CodeSandbox) -> str:
    """The wall; the first jail of a process must try which one can be built, and the loop must not wait for that."""
    return sandbox.tier


def _check_pending(record: RunRecord, decisions: Mapping[str, Settlement]) -> None:
    if record.state == "running":
        raise RunTaken(record.run_id, is_journaled=False)
    pending = [call.call_id for call in record.pending]
    if strangers := [call_id for call_id in decisions if call_id not in pending]:
        raise no_such_call(strangers, pending)
    for call_id, settlement in decisions.items():
        if isinstance(settlement, Ran | NotRun):  # nothing is in doubt where nothing was journaled
            raise InvalidSetting(
                f"{call_id}: {settlement!r:.80} does not fit", hint="say Allow(), Deny(reason) or Edit(args)"
            )
