"""Turn stream: the events of one turn at a time, given as they happen; leaving it ends the turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

from hatchway.core.events import AgentEvent, Cancelled

Work = Callable[[], Coroutine[Any, Any, None]]
"""Does a turn."""


class TurnStream:
    """Streams the turns of one agent, one after the other.

    Args:
        agent_id: Whose they are.
    """

    def __init__(self, agent_id: str) -> None:
        self._agent_id = agent_id
        self.listener: Callable[[AgentEvent], None] | None = None
        """Takes events; None while nobody listens."""
        self._working: asyncio.Task[None] | None = None
        self._leaving: asyncio.Event | None = None

    def emit(self, event: AgentEvent) -> None:
        """Tell an event."""
        if self.listener is not None:
            self.listener(event)

    async def cancel(self) -> None:
        """End the running turn; its stream ends with `Cancelled`."""
        working = self._working
        if working is not None and not working.done():
            working.cancel()
            await asyncio.wait({working})

    async def of(self, work: Work) -> AsyncGenerator[AgentEvent, None]:
        """The events of a turn.

        Raises:
            RuntimeError: Another one is under way.
        """
        await self._left()
        if self._working is not None:
            raise RuntimeError("a turn is under way; end it with `cancel`, or read its stream to the end")
        events: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        self.listener = events.put_nowait
        self._working = working = asyncio.ensure_future(work())
        working.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            if working.cancelled():
                yield Cancelled("cancelled", agent_id=self._agent_id)
            else:
                working.result()
        finally:
            self._leaving = leaving = asyncio.Event()
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            self._working = self.listener = self._leaving = None
            leaving.set()

    async def _left(self) -> None:
        """A stream whose loop was just left with `break` ends by itself, in the next moments: wait for that."""
        for _ in range(3):  # Python closes it by a task of its own
            if self._working is None:
                return
            await asyncio.sleep(0)
        if self._leaving is not None:
            await self._leaving.wait()
