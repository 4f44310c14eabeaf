"""Values on their way to a vendor and back: JSON text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from hatchway.core.errors import AnswerWithheld, described
from hatchway.core.values import to_wire


def encoded(value: Any, *, as_json: bool) -> str:
    """What a tool gave, as a vendor takes it: text as it is, all else as JSON.

    Args:
        value: What the tool gave.
        as_json: Text too: the vendor was told a schema of the result.

    Raises:
        ValueNotPortable: It is of no kind that crosses a wall.
    """
    to_wire(value, root="result")
    if isinstance(value, str) and not as_json:
        return value
    return to_json(value, bytes_mode="base64", inf_nan_mode="strings").decode()


def told(error: BaseException) -> str:
    """An error as a vendor's code or model is told it."""
    shown = described(error)
    return f"{shown['type']}: {shown['message']}"


def output_of(provider: str, text: str, schema: Mapping[str, Any] | None) -> Any:
    """The output of an answer: its text, or what is in it when a schema was asked for.

    Raises:
        AnswerWithheld: It is no JSON though that was asked for.
    """
    if schema is None:
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise AnswerWithheld(provider, "no JSON, though an output schema was asked for", text=text) from None
