"""Text from code and tools, made safe to show: on a terminal, in a page, in a picture."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from hatchway.core.values import as_python

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories that move the cursor, reorder, hide or break text: controls, formats, surrogates, separators."""


class _Escapes(dict[int, str]):
    """A table for `str.translate` that learns each character once; non-characters are escaped too: XML has none."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        hidden = char not in "\n\t" and (unicodedata.category(char) in _INVISIBLE or code & 0xFFFE == 0xFFFE)
        self[code] = _escape(code) if hidden else char
        return self[code]


def _escape(code: int) -> str:
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


_ESCAPES = _Escapes()


def neutral(text: str) -> str:
    """Text in which only newlines and tabs are left of what a terminal would act on; the rest is shown as escapes."""
    return text.translate(_ESCAPES)


def cut(text: str, limit: int) -> str:
    """Text of at most about `limit` characters, cut in the middle, saying how much is missing."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} … {len(text) - 2 * half} more characters … {text[-half:]}"


def shown(value: Any) -> str:
    """A value as Python writes it, neutral; one that refuses to be written is named by its type."""
    try:
        return neutral(as_python(value))
    except Exception as e:
        return neutral(f"<{type(value).__name__} that cannot be shown: {e}>")


def value_text(value: Any, limit: int = 200) -> str:
    """A value on one line, neutral and cut."""
    return cut(shown(value), limit)


def call_text(name: str, arguments: Mapping[str, Any], limit: int = 100) -> str:
    """A call as the code would write it, on one line."""
    inside = ", ".join(f"{neutral(key)}={shown(value)}" for key, value in arguments.items())
    return f"{neutral(name)}({cut(inside, limit)})"


def call_source(name: str, arguments: Mapping[str, Any], limit: int) -> tuple[str, bool]:
    """A call as Python source, one argument per line, and whether any had to be cut to `limit` characters."""
    whole = {key: shown(value) for key, value in arguments.items()}
    lines = [f"    {neutral(key)}={cut(text, limit)},\n" for key, text in whole.items()]
    inside = "\n" + "".join(lines) if lines else ""
    return f"{neutral(name)}({inside})", any(len(text) > limit for text in whole.values())


def elapsed_text(seconds: float) -> str:
    """A span of time in a few characters: `4 ms`, `12.50 s`, `3:05 min`, `2:10 h`, `3 days`."""
    if seconds < 0.9995:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    if seconds < 99.995:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02} h" if hours < 48 else f"{hours // 24} days"


def size_text(count: float) -> str:
    """A number of bytes in a few characters: `512 B`, `1.5 KB`, `20 MB`."""
    for unit in ("B", "KB", "MB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 10 else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GB"
