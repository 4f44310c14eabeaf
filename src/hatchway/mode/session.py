"""A session of a mode: actions in one kept interpreter, each driven through the gate."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from hatchway.core.errors import ApprovalRequired
from hatchway.core.events import AgentEvent
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult
from hatchway.mode.run import Run
from hatchway.mode.stream import streamed


class ModeSession:
    """Names, imports and functions persist from action to action. One action at a time."""

    def __init__(self, new_run: Callable[[Limits | None], Run], *, asks: bool) -> None:
        self._new_run = new_run
        self._asks = asks

    async def run(
        self, code: str, *, inputs: Mapping[str, Any] | None = None, limits: Limits | None = None
    ) -> ExecutionResult:
        """As `CodeMode.run`, with the state kept."""
        return await finished(self._new_run(limits), code, inputs)

    async def stream(
        self, code: str, *, inputs: Mapping[str, Any] | None = None, limits: Limits | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """As `CodeMode.stream`, with the state kept."""
        async for event in streamed(self._new_run(limits), code, inputs, asks=self._asks):
            yield event


async def finished(run: Run, code: str, inputs: Mapping[str, Any] | None) -> ExecutionResult:
    """The result of a run from its start.

    Raises:
        ApprovalRequired: It paused instead.
    """
    outcome = await run.start(code, inputs)
    if isinstance(outcome, ExecutionResult):
        return outcome
    raise ApprovalRequired(run.run_id, outcome.pending)
