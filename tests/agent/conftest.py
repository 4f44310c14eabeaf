"""What tests of the agent share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from hatchway.agent import AgentEvent, ApprovalRequest
from hatchway.testing import ScriptedAgentModel


class Watching:
    """Reads streams to their end and answers what they ask."""

    async def __call__(
        self, events: AsyncIterator[AgentEvent], answer: Callable[[ApprovalRequest], None] | None = None
    ) -> list[AgentEvent]:
        """All events; everything is approved unless `answer` does it."""
        found: list[AgentEvent] = []
        async for event in events:
            found.append(event)
            if isinstance(event, ApprovalRequest):
                event.approve() if answer is None else answer(event)
        return found

    def only(self, kind: Any, events: list[AgentEvent]) -> list[Any]:
        """Those of one kind."""
        return [event for event in events if isinstance(event, kind)]

    def told(self, model: ScriptedAgentModel, request: int = -1) -> str:
        """What the model was told last before a reply, as text."""
        return "\n".join(str(part.content) for part in model.seen[request][-1].parts)


@pytest.fixture
def watch() -> Watching:
    """Reads streams."""
    return Watching()
