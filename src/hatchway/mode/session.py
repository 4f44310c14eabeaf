"""A session of a mode: actions in one kept interpreter, each driven through the gate."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any

from hatchway.core.events import AgentEvent
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeSession
from hatchway.mode.run import Run
from hatchway.mode.stream import streamed

Finish = Callable[[Run, str, Mapping[str, Any] | None], Awaitable[ExecutionResult]]


class ModeSession:
    """Names, imports and functions persist from action to action. One action at a time.

    Args:
        new_run: Makes the run of an action.
        finish: Drives it to its end.
        refresh: Takes what servers offer by now, before each action.
        asks: Calls to be asked about come as events when it is streamed.
        session_id: Its id in the journal.
        limits: Defaults for its actions.
        done: How many actions of it were done before.
        state: The sandbox's own session.
    """

    def __init__(
        self,
        new_run: Callable[..., Run],
        finish: Finish,
        *,
        refresh: Callable[[], Awaitable[None]],
        asks: bool,
        session_id: str = "",
        limits: Limits | None = None,
        done: int = 0,
        state: CodeSession | None = None,
    ) -> None:
        self.session_id = session_id
        """What `CodeMode.session(session_id=…)` takes to have it again; empty without a journal."""
        self._new_run, self._finish, self._refresh = new_run, finish, refresh
        self._asks = asks
        self._limits = limits
        self._done = done
        self._last: Run | None = None
        self._state = state

    @property
    def is_gone(self) -> bool:
        """Whether its interpreter is known to be dead."""
        return self._state is not None and self._state.is_gone

    @property
    def place(self) -> int:
        """The number the next action gets among those of the session in the journal."""
        return self._done + (self._last is not None and self._last.is_entered)

    async def run(
        self, code: str, *, inputs: Mapping[str, Any] | None = None, limits: Limits | None = None
    ) -> ExecutionResult:
        """As `CodeMode.run`, with the state kept."""
        await self._refresh()
        return await self._finish(self._next(limits), code, inputs)

    async def stream(
        self, code: str, *, inputs: Mapping[str, Any] | None = None, limits: Limits | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """As `CodeMode.stream`, with the state kept."""
        await self._refresh()
        async for event in streamed(self._next(limits), code, inputs, asks=self._asks):
            yield event

    def _next(self, limits: Limits | None) -> Run:
        if not self.session_id:
            return self._new_run(limits)
        self._done = self.place  # one with inputs that cannot cross has none
        self._last = self._new_run(limits or self._limits, place=self._done)
        return self._last
