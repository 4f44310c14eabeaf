"""Durable runs: each step is in the journal, so that the run can go on after its process is gone."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import Settlement
from hatchway.core.errors import CheckpointRefused, CodeExecutionError, HatchwayError
from hatchway.core.events import (
    AgentEvent,
    CodeExecutionOutput,
    CodeExecutionOutputChunk,
    RunFailed,
    RunPaused,
    RunResumed,
)
from hatchway.core.recording import Recording
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeExecution, CodeSandbox
from hatchway.core.signing import key_id, load_key, run_seed, seal, unseal
from hatchway.core.values import to_wire
from hatchway.gate.limits import CallBudget
from hatchway.journal.book import RunBook
from hatchway.journal.entries import RunHead
from hatchway.journal.history import History
from hatchway.journal.store import Journal
from hatchway.mode.call_book import CallBook
from hatchway.mode.pull import Paused, PullLoop
from hatchway.mode.recovery import check_tools, held_calls, recording_of
from hatchway.mode.run import Run, shown_text
from hatchway.mode.serve import CallServer
from hatchway.sandboxes.recorded import check_facts
from hatchway.sandboxes.replay import ReplayExecution
from hatchway.sandboxes.starting import to_the_end
from hatchway.tools.functions import Tool


@dataclass(slots=True, kw_only=True)
class DurableRun(Run):
    """A run whose every step is journaled."""

    store: Journal
    tools: Mapping[str, str]
    """A digest of each tool's schema."""
    approval_seconds: float | None = None
    session_id: str = ""
    place: int = 0
    epoch: int = 1
    """The epoch in which it was last driven here."""
    _book: CallBook | None = field(default=None, init=False)
    _began_with: Mapping[str, str] | None = field(default=None, init=False)
    """The digests of the tools it began with, where others may be offered by now."""

    @property
    def is_entered(self) -> bool:
        """Whether its journal knows of it."""
        return self._book is not None

    async def start(self, code: str, inputs: Mapping[str, Any] | None) -> ExecutionResult | Paused:
        """As `Run.start`; the run is entered first."""
        self._take_styles(code)
        to_wire(dict(inputs or {}), root="inputs")  # what cannot cross cannot be stored either
        self._open_book(self.store.begin(
            self.run_id, self._head(code, inputs), sandbox=self.sandbox.name, tier=self.sandbox.tier,
            session_id=self.session_id, place=self.place,
        ))  # fmt: skip
        return await Run.start(self, code, inputs)

    async def go_on(
        self,
        book: RunBook,
        head: RunHead,
        history: History,
        settlements: Mapping[str, Settlement],
        checkpoint: bytes | None,
    ) -> ExecutionResult | Paused:
        """Go on with a run that was taken: where it stands here, from its checkpoint, or by running it again."""
        is_here = self._loop is not None and self.epoch == book.epoch
        self._began_with = head.tools
        try:
            if not is_here:
                check_tools(head, history, self.tools)
            self._open_book(book, made=len(history.calls))
            await book.take_up()
        except BaseException:
            book.give_back()
            raise
        self.epoch = book.epoch
        self.emit(RunResumed(book.epoch, code=head.code, run_id=self.run_id))
        try:
            with self._span():
                if not is_here:
                    self._loop = await self._recovered(head, history, checkpoint)
                loop = self._loop
                assert loop is not None
                loop.go_on(settlements, loop.execution)
                outcome = await loop.drive()
        except BaseException as e:
            await self._stopped(e, is_waiting=bool(history.pending))
            raise
        return await self._settle(loop, outcome)

    def forget(self) -> None:
        """What stood here is gone."""
        self._loop = None

    async def _recovered(self, head: RunHead, history: History, checkpoint: bytes | None) -> PullLoop:
        """The run, led to where it stood."""
        if checkpoint is not None:
            check_facts(head.facts, self.sandbox.facts)
            execution = await self._restored(checkpoint)
        else:
            execution = await self._repeated(recording_of(head, history, self._seed()))
        server = self._server(execution)
        loop = PullLoop(server, CallBudget(self.limits.calls, used=len(history.calls)))
        try:
            server.held.update(held_calls(history, self.passage, _standing_at(execution)))
        except BaseException:
            await execution.cancel()
            raise
        loop.stand_at(execution)
        return loop

    async def _repeated(self, recording: Recording) -> CodeExecution:
        execution = await self.where.replay(recording, on_output=self._output)
        if execution is None and not recording.calls:
            return await self._execute(recording.code, recording.inputs)
        if execution is None:
            raise CheckpointRefused(
                f"the sandbox {self.sandbox.name} cannot run code again",
                hint=self._what_is_left(),
            )
        return execution

    async def _restored(self, checkpoint: bytes) -> CodeExecution:
        try:
            payload, _ = unseal(checkpoint, self._claims())
        except CheckpointRefused as e:
            e.hint = self._what_is_left()
            raise
        execution = await self.sandbox.restore(payload, on_output=self._output)
        if execution is None:
            raise CheckpointRefused("the sandbox cannot restore it", hint=self._what_is_left())
        return execution

    def _what_is_left(self) -> str:
        return f"`hatchway show {self.run_id[:8]}` tells which calls ran; ask anew for the rest"

    async def _execute(self, code: str, inputs: Mapping[str, Any] | None) -> CodeExecution:
        recording = Recording(
            code=code, functions=self.signatures, inputs=inputs or {}, limits=self.limits, seed=self._seed(),
            facts=self.sandbox.facts,
        )  # fmt: skip
        execution = await self.where.replay(recording, on_output=self._output)
        if execution is None:  # a backend that cannot repeat code: the journal tells, but cannot bring it back
            execution = await Run._execute(self, code, inputs)
        return execution

    def _server(self, execution: CodeExecution) -> CallServer:
        execution.watch_displays(self._display)
        return CallServer(
            run_id=self.run_id,
            execution=execution,
            passage=self.passage,
            emit=self._tell,
            ask=self.ask,
            grants=self.grants,
            book=self._book,
        )

    async def _settle(self, loop: PullLoop, outcome: ExecutionResult | Paused) -> ExecutionResult | Paused:
        assert self._book is not None
        log = self._book.log
        if isinstance(outcome, ExecutionResult):
            await _last_word(log, log.ended(outcome))
            self.emit(CodeExecutionOutput(shown_text(outcome), outcome.images, result=outcome, run_id=self.run_id))
            return outcome
        await _last_word(log, self._stand(loop, log))
        self._tell(RunPaused(outcome.pending, run_id=self.run_id))
        return outcome

    async def _stand(self, loop: PullLoop, log: RunBook) -> None:
        checkpoint = (
            loop.execution.dump() if isinstance(self.where, CodeSandbox) and loop.execution.is_dump_exact else None
        )
        if checkpoint is not None:
            await loop.execution.cancel()  # the bytes hold everything: no worker is kept while a person thinks
            self._loop = None
        await log.paused("paused", None if checkpoint is None else seal(checkpoint, self._claims()))

    async def _stopped(self, error: BaseException, *, is_waiting: bool = False) -> None:
        """The code failed: the run is over. The host failed or gave up: it can be resumed.

        Args:
            error: What happened.
            is_waiting: People were asked; a run that could not be brought back still waits for them.
        """
        self._add_hint(error)
        assert self._book is not None
        log, self._loop = self._book.log, None
        if isinstance(error, CodeExecutionError):
            await _last_word(log, log.ended(error))
        elif is_waiting and isinstance(error, CheckpointRefused):
            await _last_word(log, log.paused("paused", None))
        else:
            with suppress(HatchwayError):  # what happened before it is told
                await _last_word(log, log.interrupted())
        told = error if isinstance(error, HatchwayError) else CheckpointRefused(f"the run was interrupted: {error!r}")
        self.emit(RunFailed(told, run_id=self.run_id))

    def _tell(self, event: AgentEvent) -> None:
        assert self._book is not None
        self.emit(self._book.tell(event))

    def _output(self, stream: Any, text: str) -> None:
        self._tell(CodeExecutionOutputChunk(text, stream=stream, run_id=self.run_id))

    def _open_book(self, book: RunBook, made: int = 0) -> None:
        self._book = CallBook(
            book, seed=self._seed(), redaction=self.store.redaction, made=made, approval_seconds=self.approval_seconds
        )
        if self._loop is not None:
            self._loop.write_to(self._book)

    def _head(self, code: str, inputs: Mapping[str, Any] | None) -> RunHead:
        return RunHead(
            code=code, inputs=inputs or {}, functions=tuple(self.signatures), limits=self.limits, tools=self.tools,
            facts=self.sandbox.facts, key_id=key_id(load_key()),
        )  # fmt: skip

    def _seed(self) -> bytes:
        return run_seed(self.session_id or self.run_id)

    def _claims(self) -> dict[str, str]:
        """What a checkpoint is bound to; a server may offer more by now, and `check_tools` looks at the open calls."""
        began_with = self.tools if self._began_with is None else self._began_with
        return {"run": self.run_id, "tools": tools_digest(began_with), "kind": "pause"}


async def _last_word(log: RunBook, storing: Coroutine[Any, Any, None]) -> None:
    """Store how a run stands; only then, also if the caller is cancelled meanwhile, may others have it."""
    try:
        await storing
    except asyncio.CancelledError:
        with suppress(HatchwayError):
            await to_the_end(log.stored())
        raise
    finally:
        log.give_back()


def schema_digests(tools: Mapping[str, Tool]) -> dict[str, str]:
    """A digest of each tool's schema, by name."""
    return {
        name: hashlib.sha256(to_wire([name, tool.parameters, tool.is_async, tool.approval])).hexdigest()[:32]
        for name, tool in tools.items()
    }


def tools_digest(digests: Mapping[str, str]) -> str:
    """One digest for all tools."""
    return hashlib.sha256(to_wire(dict(sorted(digests.items())))).hexdigest()


def _standing_at(execution: CodeExecution) -> dict[str, FunctionCall]:
    """The calls a repeated execution stands at, as the code makes them now."""
    return {call.call_id: call for call in execution.standing_at} if isinstance(execution, ReplayExecution) else {}
