"""A session in Monty: one worker kept over several actions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from hatchway.core.calls import as_code
from hatchway.core.errors import SandboxCrashed
from hatchway.core.limits import Limits
from hatchway.core.recording import Recording, guest_seed
from hatchway.core.sandbox import CodeExecution, CodeSession, Functions, OnOutput
from hatchway.sandboxes.eviction import GONE, HINT
from hatchway.sandboxes.monty.checkpoint import SessionCheckpoint
from hatchway.sandboxes.monty.execution import MontyExecution
from hatchway.sandboxes.monty.lease import Lease
from hatchway.sandboxes.monty.left_files import with_output
from hatchway.sandboxes.monty.output import MontyOutput
from hatchway.sandboxes.monty.repeat import Repeat
from hatchway.sandboxes.repeatable import Repeatable
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
        output: Where its actions leave files; None where none are granted.
    """

    def __init__(self, lease: Lease, limits: Limits, start: Start, output: MontyOutput | None) -> None:
        self._lease, self._limits = lease, limits
        self._start = partial(start, lease, output=output)
        self._output = output
        self._current: MontyExecution | None = None
        self._gone = GONE
        self._opened_at = asyncio.get_running_loop().time()

    async def execute(
        self,
        code: str,
        functions: Functions = (),
        *,
        inputs: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        on_output: OnOutput | None = None,
    ) -> Repeatable:
        """As the contract says."""
        self._check_idle()
        limits = limits or self._limits
        self._current = self._start(as_code(code), functions, inputs=inputs or {}, limits=limits, on_output=on_output)
        return with_output(self._current, self._output, limits, is_session=True)

    async def replay(self, recording: Recording, *, on_output: OnOutput | None = None) -> CodeExecution:
        """As the contract says; only in a session that was opened to be run again."""
        return await replayed(recording, partial(self.begin, recording), on_output)

    async def begin(self, recording: Recording, on_output: OnOutput | None) -> Repeatable:
        """Start a recorded action from its beginning."""
        self._check_idle()
        script = [recorded.trail.get("clock", ()) for recorded in recording.calls]
        self._current = self._start(
            recording.code,
            recording.functions,
            inputs=recording.inputs,
            limits=recording.limits,
            on_output=on_output,
            repeat=Repeat(guest_seed(recording.seed, self._lease.feeds), script, is_again=bool(recording.calls)),
        )
        return with_output(self._current, self._output, recording.limits, is_session=True)

    async def dump(self) -> bytes | None:
        """As the contract says.

        Raises:
            RuntimeError: An action has not ended.
            SandboxCrashed: The session is gone.
        """
        self._check_idle()
        vm = await self._lease.pilot.flown(self._lease.session.dump)
        files = {} if self._output is None else self._output.kept()
        return SessionCheckpoint(limits=self._limits, feeds=self._lease.feeds, files=files).sealed(vm)

    @property
    def is_gone(self) -> bool:
        """As the contract says."""
        return self._lease.is_over

    @property
    def idle_since(self) -> float | None:
        """As `Evictable` says."""
        return self._opened_at if self._current is None else self._current.ended_at

    async def evict(self, why: str) -> None:
        """As `Evictable` says."""
        self._gone = f"the session is gone: {why}"
        await self.aclose()

    async def aclose(self) -> None:
        """Kill what still runs and give the worker back."""
        if self._current is not None and not self._current.is_over:
            await self._current.abandon(SandboxCrashed("the session was left while the code was running"))
        await self._lease.given_back()
        if self._output is not None:
            self._output.close()

    def _check_idle(self) -> None:
        if self._lease.is_over:
            raise SandboxCrashed(self._gone, hint=HINT)
        if self._current is not None and not self._current.is_over:
            raise RuntimeError("the previous action has not ended")
