"""A session: one guest process for several actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from hatchway.core.errors import SandboxCrashed
from hatchway.core.limits import Limits
from hatchway.core.sandbox import CodeExecution, CodeSession, Functions, OnOutput
from hatchway.sandboxes.guest_execution import GuestExecution
from hatchway.sandboxes.process.supervised import SupervisedProcess

Begin = Callable[..., Awaitable[GuestExecution]]
"""`begin(process, code, functions, inputs, limits, on_output, is_session=)`."""


class ProcessSession(CodeSession):
    """The actions of one process.

    Args:
        process: Where they run; it is killed by `close`.
        begin: Starts an action in it.
        limits: The default of each action.
    """

    def __init__(self, process: SupervisedProcess, begin: Begin, limits: Limits) -> None:
        self._process, self._begin, self._limits = process, begin, limits
        self._current: GuestExecution | None = None
        self._is_beginning = False

    async def execute(
        self,
        code: str,
        functions: Functions = (),
        *,
        inputs: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        on_output: OnOutput | None = None,
    ) -> CodeExecution:
        """As the contract says."""
        if self._is_beginning or (self._current is not None and not self._current.is_over):
            raise RuntimeError("the previous action of this session has not ended")
        if self._process.is_dead:
            raise SandboxCrashed("the session is gone: its interpreter died or was killed", hint="open a new session")
        self._is_beginning = True
        try:
            limits = limits or self._limits
            self._current = await self._begin(
                self._process, code, functions, inputs, limits, on_output, is_session=True
            )
        finally:
            self._is_beginning = False
        return self._current

    async def close(self) -> None:
        """Kill the process, and what runs in it."""
        if self._current is not None:
            await self._current.abandon(SandboxCrashed("the session was left while the code ran"))
        self._process.kill()
        await self._process.wait_gone()
