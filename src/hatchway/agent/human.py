"""The person as the model: what they type is the action, and what it gives ends the turn. No vendor is needed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING
from uuid import uuid4

from hatchway.core.errors import MissingExtra

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models.function import AgentInfo, DeltaToolCalls, FunctionModel

HUMAN = "human"
"""The name of this model, as `--model` takes it."""


def human_model(tool_name: str = "execute_code") -> FunctionModel:
    """A model whose reply to a prompt is to run it, and whose reply to a result is nothing.

    Raises:
        MissingExtra: Pydantic AI is not installed.
    """
    try:
        from pydantic_ai.messages import UserPromptPart
        from pydantic_ai.models.function import DeltaToolCall, FunctionModel
    except ImportError as e:
        raise MissingExtra("Pydantic AI, whose messages a conversation is kept in,", "agent") from e

    async def written(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        last = messages[-1].parts[-1]
        if isinstance(last, UserPromptPart):
            texts = [last.content] if isinstance(last.content, str) else [p for p in last.content if isinstance(p, str)]
            code = json.dumps({"code": "\n".join(texts)})
            yield {0: DeltaToolCall(name=tool_name, json_args=code, tool_call_id=f"human-{uuid4().hex[:8]}")}
        else:
            yield ""

    return FunctionModel(stream_function=written, model_name=HUMAN)
