"""Run: one action on its way from start, over pauses, to its end; each step journaled and told."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hatchway.core.calls import FunctionSignature, as_code
from hatchway.core.decisions import Settlement
from hatchway.core.errors import CheckpointRefused, CodeExecutionError, CodeRuntimeError
from hatchway.core.events import (
    CodeExecutionDisplay,
    CodeExecutionOutput,
    CodeExecutionOutputChunk,
    Emit,
    RunFailed,
    RunPaused,
    RunStarted,
)
from hatchway.core.limits import Limits
from hatchway.core.results import Display, ExecutionResult
from hatchway.core.sandbox import CodeExecution, CodeSandbox, CodeSession
from hatchway.core.values import as_python
from hatchway.gate.limits import CallBudget
from hatchway.journal.memory import MemoryJournal, RunRecord
from hatchway.mode.grants import Grants
from hatchway.mode.hints import what_to_change
from hatchway.mode.passage import Passage
from hatchway.mode.pull import Paused, PullLoop
from hatchway.mode.serve import Ask, CallServer
from hatchway.trace.otel import action_span

Fit = Callable[[str], tuple[Sequence[FunctionSignature], str | None]]
"""Signatures and stubs for an action."""


@dataclass(slots=True, kw_only=True)
class Run:
    """One action driven through the gate: where it runs, what it may call, whom it tells."""

    run_id: str
    sandbox: CodeSandbox
    where: CodeSandbox | CodeSession
    """The sandbox for a fresh state, a session for a kept one."""
    passage: Passage
    signatures: Sequence[FunctionSignature]
    stubs: str | None
    """The tools' stubs when code is to be type-checked first."""
    fit: Fit | None = None
    """Takes both from the code, where that says how it calls the tools."""
    away: Collection[str] = ()
    """MCP servers that cannot be had, by their names in the code."""
    limits: Limits
    ask: Ask
    emit: Emit
    grants: Grants
    record: RunRecord
    journal: MemoryJournal
    _loop: PullLoop | None = field(default=None, init=False)
    _shown: set[str] = field(default_factory=set[str], init=False)

    @property
    def is_entered(self) -> bool:
        """Whether its journal knows of it."""
        return True

    async def start(self, code: str, inputs: Mapping[str, Any] | None) -> ExecutionResult | Paused:
        """Start the code and drive it to its end or to a pause."""
        self._take_styles(code)
        self.emit(RunStarted(code, self.sandbox.name, self.sandbox.tier, run_id=self.run_id))
        try:
            with self._span():
                self._loop = await self._launch(code, inputs)
                outcome = await self._loop.drive()
        except BaseException as e:
            await self._stopped(e)
            raise
        return await self._settle(self._loop, outcome)

    async def resume(self, decisions: Mapping[str, Settlement]) -> ExecutionResult | Paused:
        """Go on from a pause with these decisions."""
        loop = self._loop
        assert loop is not None, "a paused run has been started"
        self.record.state = "running"
        try:
            with self._span():
                loop.go_on(decisions, await self._standing(loop))
                outcome = await loop.drive()
        except BaseException as e:
            await self._stopped(e)
            raise
        return await self._settle(loop, outcome)

    async def abandon(self) -> None:
        """Kill what is left of the code."""
        if self._loop is not None:
            await self._loop.abandon()

    def _take_styles(self, code: str) -> None:
        as_code(code)
        if self.fit is not None:
            (self.signatures, self.stubs), self.fit = self.fit(code), None

    async def _launch(self, code: str, inputs: Mapping[str, Any] | None) -> PullLoop:
        if self.stubs is not None:
            await self.sandbox.type_check(code, self.stubs)
        return PullLoop(self._server(await self._execute(code, inputs)), CallBudget(self.limits.calls))

    async def _execute(self, code: str, inputs: Mapping[str, Any] | None) -> CodeExecution:
        return await self.where.execute(
            code, self.signatures, inputs=inputs, limits=self.limits, on_output=self._output
        )

    def _server(self, execution: CodeExecution) -> CallServer:
        execution.watch_displays(self._display)
        return CallServer(
            run_id=self.run_id,
            execution=execution,
            passage=self.passage,
            emit=self.emit,
            ask=self.ask,
            grants=self.grants,
        )

    async def _standing(self, loop: PullLoop) -> CodeExecution:
        """The execution the pause left: still there, or restored from its checkpoint."""
        if self.record.checkpoint is None:
            return loop.execution
        restored = await self.sandbox.restore(self.record.checkpoint, on_output=self._output)
        if restored is None:
            raise CheckpointRefused("the sandbox cannot restore it", hint="the code is not run again by itself")
        self.record.checkpoint = None
        restored.watch_displays(self._display)
        return restored

    async def _settle(self, loop: PullLoop, outcome: ExecutionResult | Paused) -> ExecutionResult | Paused:
        if isinstance(outcome, ExecutionResult):
            self.journal.ended(self.record, result=outcome)
            self.emit(CodeExecutionOutput(shown_text(outcome), outcome.images, result=outcome, run_id=self.run_id))
            return outcome
        if isinstance(self.where, CodeSandbox) and loop.execution.is_dump_exact:
            self.record.checkpoint = loop.execution.dump()  # others, and a session's interpreter, stay as they are
        self.record.state, self.record.pending, self.record.live = "paused", outcome.pending, self
        if self.record.checkpoint is not None:
            await loop.execution.cancel()  # the bytes hold everything: no worker is kept while a person thinks
        self.emit(RunPaused(outcome.pending, run_id=self.run_id))
        return outcome

    async def _stopped(self, error: BaseException) -> None:
        self._add_hint(error)
        told = error if isinstance(error, Exception) else CodeRuntimeError("the run was cancelled")
        self.journal.ended(self.record, error=told)
        self.emit(RunFailed(told, run_id=self.run_id))

    def _add_hint(self, error: BaseException) -> None:
        if isinstance(error, CodeExecutionError) and not error.hint:
            names = [signature.name for signature in self.signatures]
            has_network = self.sandbox.constraints.network
            error.hint = what_to_change(error.message, names, has_network=has_network, away=self.away)

    def _output(self, stream: Literal["stdout", "stderr"], text: str) -> None:
        self.emit(CodeExecutionOutputChunk(text, stream=stream, run_id=self.run_id))

    def _display(self, display: Display) -> None:
        if display.name in self._shown:  # told before the pause; code that was run again shows it once more
            return
        self._shown.add(display.name)
        self.emit(CodeExecutionDisplay(display, run_id=self.run_id))

    def _span(self) -> Any:
        return action_span(run_id=self.run_id, sandbox=self.sandbox.name, tier=self.sandbox.tier)


def shown_text(result: ExecutionResult) -> str | None:
    """What a result shows: what was printed, tables, and the output."""
    tables = "".join(f"{display.text}\n" for display in result.displays if not display.mime_type.startswith("image/"))
    shown = f"{result.stdout}{tables}"
    return (shown if result.output is None else f"{shown}{as_python(result.output)}") or None
