"""A session: one container kept over several actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from hatchway.core.errors import SandboxCrashed
from hatchway.core.limits import Limits
from hatchway.core.recording import Recording
from hatchway.core.sandbox import CodeExecution, CodeSession, Functions, OnOutput
from hatchway.sandboxes.container.execution import ContainerExecution
from hatchway.sandboxes.container.process import ContainerProcess
from hatchway.sandboxes.guest_execution import GuestExecution
from hatchway.sandboxes.past import Past
from hatchway.sandboxes.replay import replayed


class ContainerSession(CodeSession):
    """The actions of one container, one after the other. Limits set at its birth (memory, processes, disk) stay.

    Args:
        container: Where they run; it is killed by `close`.
        limits: The default of each action.
        begin: Starts an action in it: `begin(container, origin, on_output, is_session=)`.
        past: What it did.
    """

    def __init__(
        self, container: ContainerProcess, limits: Limits, begin: Callable[..., Awaitable[GuestExecution]], past: Past
    ) -> None:
        self._container, self._limits, self._past = container, limits, past
        self._begin = partial(begin, container, is_session=True)
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
        return await self._start(self._past.fresh(code, functions, inputs, limits or self._limits), on_output)

    async def replay(self, recording: Recording, *, on_output: OnOutput | None = None) -> CodeExecution:
        """As the contract says."""
        return await replayed(recording, partial(self._start, recording), on_output)

    async def repeat(self, actions: Sequence[Recording]) -> None:
        """Run actions again, each to its end.

        Raises:
            ReplayDiverged, CheckpointRefused: One of them went another way.
        """
        await self._past.repeat(actions, self._begin)

    async def dump(self) -> bytes | None:
        """As the contract says: what its actions said and were told, to be run again."""
        self._check_idle()
        return self._past.sealed()

    async def close(self) -> None:
        """Kill the container; it is gone when this returns."""
        if self._current is not None and not self._current.is_over:
            await self._current.abandon(SandboxCrashed("the session was left while the code ran"))
        self._container.kill()
        await self._container.wait_gone()

    async def _start(self, recording: Recording, on_output: OnOutput | None) -> GuestExecution | ContainerExecution:
        self._check_idle()
        self._current = await self._past.begin(recording, self._begin, on_output)
        if not self._container.has_output:
            return self._current
        return ContainerExecution(self._current, self._container, is_session=True)

    def _check_idle(self) -> None:
        if self._current is not None and not self._current.is_over:
            raise RuntimeError("the previous action of this session has not ended")
        if self._container.is_dead:
            raise SandboxCrashed("the session is gone: its container ended or was killed", hint="open a new session")
