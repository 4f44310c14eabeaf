"""What faces with a model of their own use of Pydantic AI; without the package an error that names the extra."""

from __future__ import annotations

from hatchway.core.errors import MissingExtra

try:
    from pydantic_ai.direct import model_request, model_request_stream
    from pydantic_ai.exceptions import (
        ModelAPIError,
        ModelConnectionError,
        ModelContextWindowExceededError,
        ModelHTTPError,
        ModelRateLimitError,
        ModelRequestTimeout,
        ModelServerError,
        ModelTimeoutError,
        ModelUnavailableError,
        UnexpectedModelBehavior,
    )
    from pydantic_ai.messages import (
        BinaryContent,
        ModelMessage,
        ModelRequest,
        ModelRequestPart,
        ModelResponse,
        ModelResponseStreamEvent,
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
    from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse, infer_model
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.usage import RequestUsage
except ImportError as e:
    raise MissingExtra("Pydantic AI, which speaks with models,", "pydantic-ai") from e

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
    "ModelRequestTimeout",
    "ModelResponse",
    "ModelResponseStreamEvent",
    "ModelServerError",
    "ModelSettings",
    "ModelTimeoutError",
    "ModelUnavailableError",
    "PartDeltaEvent",
    "PartStartEvent",
    "RequestUsage",
    "StreamedResponse",
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
    "model_request",
    "model_request_stream",
]
