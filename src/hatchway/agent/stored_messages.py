"""Messages of Pydantic AI as texts of the journal, one text per message."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hatchway.core.errors import JournalError, MissingExtra

try:
    from pydantic import TypeAdapter, ValidationError
    from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
    from pydantic_core import PydanticSerializationError
except ImportError as e:
    raise MissingExtra("Pydantic AI, which speaks with models,", "agent") from e

_MESSAGE: TypeAdapter[ModelMessage] = TypeAdapter(ModelMessage)


def to_texts(messages: Sequence[ModelMessage]) -> list[str]:
    """Each message as JSON; half a character, as some models and tools give, becomes a question mark."""
    return [_text(message) for message in messages]


def _text(message: ModelMessage) -> str:
    try:
        return _MESSAGE.dump_json(message).decode()
    except PydanticSerializationError:
        plain = _MESSAGE.dump_python(message, mode="json")
        return json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace").decode()


def from_texts(texts: Sequence[str]) -> list[ModelMessage]:
    """The messages again.

    Raises:
        JournalError: A text is no message.
    """
    try:
        return [_MESSAGE.validate_json(text) for text in texts]
    except ValidationError as e:
        told = f"{'.'.join(map(str, e.errors()[0]['loc']))}: {e.errors()[0]['msg']}"
        raise JournalError(
            f"a stored message cannot be read: {told}", hint="begin a new conversation: `hatchway run`"
        ) from None


def prompts_in(messages: Sequence[ModelMessage]) -> list[str]:
    """What a person said in these messages; a picture alone is an empty text."""
    return [
        _words(part)
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]


def _words(part: UserPromptPart) -> str:
    if isinstance(part.content, str):
        return part.content
    return " ".join(each for each in part.content if isinstance(each, str))
