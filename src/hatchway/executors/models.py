"""What the loop uses of Pydantic AI; without the package an error that names the extra."""

from __future__ import annotations

from hatchway.core.errors import MissingExtra

try:
    from pydantic_ai.direct import model_request, model_request_stream
    from pydantic_ai.messages import (
        BinaryContent,
        ModelMessage,
        ModelRequest,
        ModelRequestPart,
        ModelResponse,
        PartDeltaEvent,
        PartStartEvent,
        TextPart,
        TextPartDelta,
        ThinkingPart,
        ThinkingPartDelta,
        ToolCallPart,
        ToolReturnPart,
        UserContent,
        UserPromptPart,
    )
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.usage import RequestUsage
except ImportError as e:
    raise MissingExtra("Pydantic AI, which speaks with models,", "pydantic-ai") from e

__all__ = [
    "BinaryContent",
    "Model",
    "ModelMessage",
    "ModelRequest",
    "ModelRequestParameters",
    "ModelRequestPart",
    "ModelResponse",
    "ModelSettings",
    "PartDeltaEvent",
    "PartStartEvent",
    "RequestUsage",
    "TextPart",
    "TextPartDelta",
    "ThinkingPart",
    "ThinkingPartDelta",
    "ToolCallPart",
    "ToolDefinition",
    "ToolReturnPart",
    "UserContent",
    "UserPromptPart",
    "model_request",
    "model_request_stream",
]
