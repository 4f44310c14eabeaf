"""Plain JSON: any value in JSON types, whatever the code made of it; nothing a guest gives can fail to be shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import from_json, to_json

MOST_BITS = 4096
"""Of a number; past that it is shown as hexadecimal text, for JSON readers and Python's own text refuse it."""
MOST_LEVELS = 100
"""Of nesting; what is deeper was not made by code, which is held to less."""


def jsonable(value: Any) -> Any:
    """Any value in JSON types; what has none of its own is shown as text."""
    try:
        return from_json(to_json(value, fallback=repr, inf_nan_mode="strings", bytes_mode="base64"))
    except ValueError:
        return _piecewise(value, 0)


def plain_text(text: str) -> str:
    """Text that can be sent: halves of characters are spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()


def _piecewise(value: Any, level: int) -> Any:
    """As `jsonable`, for a value of which one part cannot be written as it is: the others are kept."""
    if level > MOST_LEVELS:
        return "…"
    match value:
        case str():
            return plain_text(value)
        case int() if value.bit_length() > MOST_BITS:
            return hex(value)
        case Mapping():
            pairs = cast(Mapping[Any, Any], value).items()
            return {plain_text(str(_piecewise(key, level + 1))): _piecewise(each, level + 1) for key, each in pairs}
        case list() | tuple() | set() | frozenset():
            return [_piecewise(each, level + 1) for each in cast(list[Any], value)]
        case _:
            return _alone(value)


def _alone(value: Any) -> Any:
    try:
        return from_json(to_json(value, fallback=repr, inf_nan_mode="strings", bytes_mode="base64"))
    except ValueError:
        return f"a {type(value).__name__} that cannot be shown"
