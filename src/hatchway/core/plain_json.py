"""Plain JSON: any value in types that every reader of JSON takes; nothing a guest gives can fail to be shown."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any, cast

from pydantic_core import to_jsonable_python

from hatchway.core.values import as_python

MOST_BITS = 2000
"""Of a number; past that it is hexadecimal text: readers, Python's own among them, limit how many digits they take."""
MOST_LEVELS = 100
"""Of nesting; what is deeper was not made by code, which is held to less."""
_NO_NUMBERS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
"""As JavaScript and pydantic write them."""


def jsonable(value: Any, level: int = 0) -> Any:
    """A value in JSON types: bytes as base64; numbers and keys that JSON lacks as text."""
    if level > MOST_LEVELS:
        return "…"
    match value:
        case None | bool():
            return value
        case str():
            return plain_text(value)
        case int():
            return int(value) if value.bit_length() <= MOST_BITS else hex(value)
        case float():
            return float(value) if math.isfinite(value) else _NO_NUMBERS[str(float(value))]
        case bytes():
            return b64encode(value).decode("ascii")
        case Mapping():
            pairs = cast(Mapping[Any, Any], value).items()
            return {_key(key): jsonable(item, level + 1) for key, item in pairs}
        case list() | tuple() | set() | frozenset():
            return [jsonable(item, level + 1) for item in cast(Iterable[Any], value)]
        case _:
            return _other(value, level)


def plain_text(text: str) -> str:
    """Text that can be sent: halves of characters are spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()


def _key(key: Any) -> str:
    return plain_text(key if isinstance(key, str) else as_python(key))


def _other(value: Any, level: int) -> Any:
    """Dates, dataclasses and models as pydantic tells them; what it cannot tell, as Python writes it."""
    try:
        plain = to_jsonable_python(value, fallback=repr, bytes_mode="base64", inf_nan_mode="constants")
    except (ValueError, TypeError):
        plain = _written(value)
    return jsonable(plain, level + 1)


def _written(value: Any) -> str:
    try:
        return as_python(value)
    except Exception:
        return f"a {type(value).__name__} that cannot be shown"
