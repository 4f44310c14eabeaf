"""The interpreter: one kept session in which all code actions of an agent run, opened anew when it is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from hatchway.agent.desk import GRACE_SECONDS, LATE_GRACE_SECONDS, ActionGate
from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import Decision, Deny, Later, Settlement
from hatchway.core.errors import (
    ApprovalRequired,
    CodeExecutionError,
    CodeLimitError,
    CodeTimeoutError,
    SandboxCrashed,
    SandboxUnavailable,
    TransportError,
)
from hatchway.core.events import AgentEvent, Emit, RunFailed, RunResumed, RunStarted
from hatchway.core.results import ExecutionResult
from hatchway.mode.mode import CodeMode
from hatchway.mode.session import ModeSession

RESTARTED = "The interpreter was restarted before this action: names and imports of earlier actions are gone."
LIMIT_HINT = "let the code take less, or do it in several actions"
TIME_HINT = "let the code do less, or raise execution_timeout (--execution-timeout)"
LOST = "The interpreter is gone with it: names and imports of earlier actions are lost."
HostFailed = SandboxCrashed | SandboxUnavailable | TransportError


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionEnd:
    """How a code action ended."""

    end: ExecutionResult | CodeExecutionError | HostFailed | None
    """Its result or what failed; None where it was stopped because a person said no."""
    notes: tuple[str, ...] = ()
    """What the model must know beside it."""


class Interpreter:
    """Runs code actions, one at a time.

    Args:
        emit: Takes the events of the runs.
        agent_id: Whose events they are.
        had_state: Actions were run before, in a process that is gone.
    """

    def __init__(self, emit: Emit, agent_id: str, *, had_state: bool = False) -> None:
        self._emit, self._agent_id = emit, agent_id
        self._mode: CodeMode | None = None
        self._hears: Emit = self.heard
        self._open = AsyncExitStack()
        self._session: ModeSession | None = None
        self._gate: ActionGate | None = None
        self._had_state, self._owes_note = had_state, False
        self._is_paused = False

    def drive(self, mode: CodeMode, hears: Emit) -> None:
        """Use this mode from now on; its `approve` is that of this interpreter, its `on_event` is `hears`."""
        self._mode, self._hears = mode, hears

    @property
    def mode(self) -> CodeMode:
        """The mode in use."""
        assert self._mode is not None, "the agent has been started"
        return self._mode

    async def session(self) -> ModeSession:
        """The session, opened if need be.

        Raises:
            SandboxUnavailable, SandboxCrashed, TransportError: It cannot be had.
        """
        if self._session is not None and not self._session.is_gone and not self._is_paused:
            return self._session
        for is_last in (False, False, True):  # what a crash left in the pool is found out one by one
            await self.close()
            try:
                self._session = await self._open.enter_async_context(self.mode.session())
                self._owes_note, self._had_state = self._owes_note or self._had_state, False
                return self._session
            except (SandboxCrashed, TransportError):
                if is_last:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def close(self) -> None:
        """Kill the interpreter; the next action gets a fresh one."""
        self._session, opened, self._open, self._is_paused = None, self._open, AsyncExitStack(), False
        await opened.aclose()

    async def run(
        self, code: str, gate: ActionGate, begin: Callable[[ModeSession], Awaitable[None]] | None = None
    ) -> ActionEnd:
        """Run an action to its end; cancelling it kills the code.

        Args:
            code: The action.
            gate: Decides about its calls.
            begin: Awaited before it starts, with the session it will run in.

        Raises:
            ApprovalRequired: It stands at calls that somebody wants to decide about later.
        """
        try:
            session = await self.session()
        except (SandboxCrashed, SandboxUnavailable, TransportError) as e:
            return ActionEnd(end=e)
        notes = (RESTARTED,) if self._owes_note else ()
        self._owes_note, self._had_state = False, True
        if begin is not None:
            await begin(session)
        end = await self._ended(asyncio.ensure_future(session.run(code)), gate)
        if isinstance(end, CodeTimeoutError | CodeLimitError | HostFailed) or end is None or session.is_gone:
            await self.close()
            self._had_state = False  # it is told now, and need not be told again
            notes = (*notes, LOST)
        return ActionEnd(end=end, notes=notes)

    async def resume(self, run_id: str, gate: ActionGate, decisions: Mapping[str, Settlement]) -> ActionEnd:
        """Go on with an action that was paused, or whose process died.

        Raises:
            ApprovalRequired: Calls of it wait, and nobody was asked yet, or somebody wants to decide later.
            InDoubt, CheckpointRefused: As `CodeMode.resume`.
        """
        running = asyncio.ensure_future(self.mode.resume(run_id, decisions))
        end = await self._ended(running, gate)
        if self._is_paused:
            await self.close()  # it stood here, and what is left of its session is not known
        return ActionEnd(end=end, notes=(LOST,))

    async def _ended(
        self, running: asyncio.Task[ExecutionResult], gate: ActionGate
    ) -> ExecutionResult | CodeExecutionError | HostFailed | None:
        loop = asyncio.get_running_loop()
        self._gate = gate
        gate.on_rejected = lambda: loop.call_later(GRACE_SECONDS, running.cancel) and None
        if gate.rejection is not None:  # said before it was led back to where it stood, which takes its time
            loop.call_later(LATE_GRACE_SECONDS, running.cancel)
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await self.close()
            raise
        finally:
            self._gate = None
        if running.cancelled():
            return None
        try:
            return running.result()
        except ApprovalRequired:
            self._is_paused = True
            raise
        except (CodeExecutionError, SandboxCrashed, SandboxUnavailable, TransportError) as e:
            return e

    async def tell_again(self, run_id: str) -> None:
        """Tell what happened in an action that came to its end in a process that is gone."""
        for event in await asyncio.to_thread(self.mode.journal.events, run_id):
            self._hears(event)

    async def store(self) -> None:
        """Have the journal store what happened so far."""
        await self.mode.journal.written(lambda db: None)

    async def approve(self, call: FunctionCall) -> Decision | Later:
        """What the mode asks about every call."""
        return await self._gate.decide(call) if self._gate is not None else Deny("no action is under way")

    def heard(self, event: AgentEvent) -> None:
        """What the mode tells about its runs."""
        if self._gate is not None:
            self._gate.calls.heard(event)
            if isinstance(event, RunStarted | RunResumed):
                self._gate.run_id = event.run_id
        if isinstance(event, RunFailed) and isinstance(event.error, CodeTimeoutError | CodeLimitError):
            is_time = isinstance(event.error, CodeTimeoutError)
            event.error.hint = TIME_HINT if is_time else LIMIT_HINT  # whoever has an agent cannot set `Limits`
        self._emit(replace(event, agent_id=self._agent_id))
