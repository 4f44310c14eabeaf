"""A session in Monty: one worker kept over several actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from hatchway.core.errors import SandboxCrashed
from hatchway.core.limits import Limits
from hatchway.core.recording import Recording, guest_seed
from hatchway.core.sandbox import CodeExecution, CodeSession, Functions, OnOutput
from hatchway.sandboxes.monty.checkpoint import SessionCheckpoint
from hatchway.sandboxes.monty.execution import MontyExecution
from hatchway.sandboxes.monty.lease import Lease
from hatchway.sandboxes.monty.repeat import Repeat
from hatchway.sandboxes.replay import replayed

Start = Callable[..., MontyExecution]


class MontySession(CodeSession):
    """A kept interpreter.

    The memory limit is the session's, for Monty sets it once; all other limits hold per action. An action that ran
    out of time or memory, or was cancelled, takes the session with it.

    Args:
        lease: The worker, held until the session is left.
        limits: The default of each action.
        start: Starts an action in the worker.
    """

    def __init__(self, lease: Lease, limits: Limits, start: Start) -> None:
        self._lease, self._limits, self._start = lease, limits, start
        self._current: MontyExecution | None = None

    async def execute(
        self,
        code: str,
        functions: Functions = (),
        *,
        inputs: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        on_output: OnOutput | None = None,
    ) -> MontyExecution:
        """As the contract says."""
        self._check_idle()
        self._current = self._start(
            self._lease, code, functions, inputs=inputs or {}, limits=limits or self._limits, on_output=on_output
        )
        return self._current

    async def replay(self, recording: Recording, *, on_output: OnOutput | None = None) -> CodeExecution:
        """As the contract says; only in a session that was opened to be run again."""
        return await replayed(recording, partial(self.begin, recording), on_output)

    async def begin(self, recording: Recording, on_output: OnOutput | None) -> MontyExecution:
        """Start a recorded action from its beginning."""
        self._check_idle()
        script = [recorded.trail.get("clock", ()) for recorded in recording.calls]
        self._current = self._start(
            self._lease,
            recording.code,
            recording.functions,
            inputs=recording.inputs,
            limits=recording.limits,
            on_output=on_output,
            repeat=Repeat(guest_seed(recording.seed, self._lease.feeds), script, is_again=bool(recording.calls)),
        )
        return self._current

    async def dump(self) -> bytes | None:
        """As the contract says.

        Raises:
            RuntimeError: An action has not ended.
            SandboxCrashed: The session is gone.
        """
        self._check_idle()
        vm = await self._lease.pilot.flown(self._lease.session.dump)
        return SessionCheckpoint(limits=self._limits, feeds=self._lease.feeds).sealed(vm)

    async def aclose(self) -> None:
        """Kill what still runs and give the worker back."""
        if self._current is not None and not self._current.is_over:
            await self._current.abandon(SandboxCrashed("the session was left while the code was running"))
        await self._lease.given_back()

    def _check_idle(self) -> None:
        if self._lease.is_over:
            raise SandboxCrashed("the session is gone: its interpreter died or was killed", hint="open a new session")
        if self._current is not None and not self._current.is_over:
            raise RuntimeError("the previous action has not ended")
