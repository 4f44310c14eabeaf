"""A session: one sealed child kept over several actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from hatchway.core.errors import SandboxCrashed
from hatchway.core.limits import Limits
from hatchway.core.sandbox import CodeExecution, CodeSession, Functions, OnOutput
from hatchway.sandboxes.guest_execution import GuestExecution
from hatchway.sandboxes.jail.execution import FilesExecution
from hatchway.sandboxes.jail.jailed_process import JailedProcess

GONE = "the session is gone: its interpreter died, was killed or was evicted"


class JailSession(CodeSession):
    """The actions of one child, one after the other. Limits set at its birth (memory, processes, disk) stay.

    Args:
        child: The process; it is killed by `close`.
        limits: The default of each action.
        begin: Starts an action in the child.
    """

    def __init__(self, child: JailedProcess, limits: Limits, begin: Callable[..., Awaitable[GuestExecution]]) -> None:
        self._child, self._limits, self._begin = child, limits, begin
        self._current: GuestExecution | None = None

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
        if self._current is not None and not self._current.is_over:
            raise RuntimeError("the previous action of this session has not ended")
        if self._child.is_dead:
            raise SandboxCrashed(GONE, hint="open a new session")
        limits = limits or self._limits
        self._current = await self._begin(self._child, code, functions, inputs, limits, on_output, is_session=True)
        if self._child.output is None:
            return self._current
        return FilesExecution(self._current, self._child, limits, is_session=True)

    async def close(self) -> None:
        """Kill the child; it is dead when this returns."""
        if self._current is not None and not self._current.is_over:
            await self._current.abandon(SandboxCrashed("the session was left while the code ran"))
        self._child.kill()
        await self._child.wait_gone()
        if self._child.output is not None:
            self._child.output.close()
