"""A session: one container kept over several actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from hatchway.core.errors import SandboxCrashed
from hatchway.core.limits import Limits
from hatchway.core.sandbox import CodeExecution, CodeSession, Functions, OnOutput
from hatchway.sandboxes.container.execution import ContainerExecution
from hatchway.sandboxes.container.process import ContainerProcess
from hatchway.sandboxes.guest_execution import GuestExecution


class ContainerSession(CodeSession):
    """The actions of one container, one after the other. Limits set at its birth (memory, processes, disk) stay.

    Args:
        container: Where they run; it is killed by `close`.
        limits: The default of each action.
        begin: Starts an action in it.
    """

    def __init__(
        self, container: ContainerProcess, limits: Limits, begin: Callable[..., Awaitable[GuestExecution]]
    ) -> None:
        self._container, self._limits, self._begin = container, limits, begin
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
        if self._container.is_dead:
            raise SandboxCrashed("the session is gone: its container ended or was killed", hint="open a new session")
        limits = limits or self._limits
        self._current = await self._begin(self._container, code, functions, inputs, limits, on_output, is_session=True)
        if not self._container.has_output:
            return self._current
        return ContainerExecution(self._current, self._container, is_session=True)

    async def close(self) -> None:
        """Kill the container; it is gone when this returns."""
        if self._current is not None and not self._current.is_over:
            await self._current.abandon(SandboxCrashed("the session was left while the code ran"))
        self._container.kill()
        await self._container.wait_gone()
