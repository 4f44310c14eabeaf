"""What the agent uses of Pydantic AI; without the package an error that names the extra."""

from __future__ import annotations

from hatchway.core.errors import MissingExtra

try:
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.exceptions import (
        ModelAPIError,
        ModelConnectionError,
        ModelContextWindowExceededError,
        ModelHTTPError,
        ModelRateLimitError,
        ModelServerError,
        ModelUnavailableError,
        UnexpectedModelBehavior,
    )
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
    from pydantic_ai.models import Model, ModelRequestParameters, infer_model
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition
except ImportError as e:
    raise MissingExtra("Pydantic AI, which speaks with models,", "agent") from e

__all__ = [
    "BinaryContent",
    "Model",
    "ModelAPIError",
    "ModelConnectionError",
    "ModelContextWindowExceededError",
    "ModelHTTPError",
    "ModelMessage",
    "ModelRateLimitError",
    "ModelRequest",
    "ModelRequestParameters",
    "ModelRequestPart",
    "ModelResponse",
    "ModelServerError",
    "ModelSettings",
    "ModelUnavailableError",
    "PartDeltaEvent",
    "PartStartEvent",
    "TextPart",
    "TextPartDelta",
    "ThinkingPart",
    "ThinkingPartDelta",
    "ToolCallPart",
    "ToolDefinition",
    "ToolReturnPart",
    "UnexpectedModelBehavior",
    "UserContent",
    "UserPromptPart",
    "infer_model",
    "model_request_stream",
]
