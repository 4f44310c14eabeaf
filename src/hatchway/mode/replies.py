"""A model's reply as events: what it says and thinks, in chunks while it comes and whole when it is there."""

from __future__ import annotations

from hatchway.core.events import AgentEvent, Emit, Response, ResponseChunk, Thoughts, ThoughtsChunk
from hatchway.mode.models import (
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    StreamedResponse,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)


async def read_reply(stream: StreamedResponse, emit: Emit, *, agent_id: str) -> ModelResponse:
    """The reply, once all of it came; each chunk is told at once."""
    async for event in stream:
        if (chunk := _chunk(event, agent_id)) is not None:
            emit(chunk)
    return stream.get()


def tell_reply(reply: ModelResponse, emit: Emit, *, agent_id: str) -> None:
    """Tell what the model thought, then what it said; nothing of what it left out."""
    if thoughts := "".join(part.content for part in reply.parts if isinstance(part, ThinkingPart)):
        emit(Thoughts(thoughts, agent_id=agent_id))
    if text := reply_text(reply):
        emit(Response(text, agent_id=agent_id))


def reply_text(reply: ModelResponse) -> str:
    """What the model said."""
    return "".join(part.content for part in reply.parts if isinstance(part, TextPart))


def _chunk(event: ModelResponseStreamEvent, agent_id: str) -> AgentEvent | None:
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return ResponseChunk(text, agent_id=agent_id) if text else None
        case PartStartEvent(part=ThinkingPart(content=text)):
            return ThoughtsChunk(text, agent_id=agent_id) if text else None
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text)):
            return ThoughtsChunk(text, agent_id=agent_id) if text else None
        case _:
            return None
