"""Text from code and tools, made safe to show: on a terminal, in a page, in a picture."""

from __future__ import annotations

import re
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
_EMOJI = "[\u2194\u2195\u2600-\u27bf\u2b1b\U0001f300-\U0001faff]"
"""What a zero-width joiner makes one picture of; between anything else it is hidden text."""
_BEFORE = f"(?:(?<={_EMOJI})|(?<={_EMOJI}\ufe0f))"
_LONGEST_EMOJI = 64
"""Characters of one picture."""
_JOINER = re.compile(f"{_BEFORE}\u200d(?={_EMOJI})")
_WRITTEN_JOINER = re.compile(rf"{_BEFORE}\\u200d(?={_EMOJI})")
_OPEN_EMOJI = re.compile(f"(?:{_EMOJI}\ufe0f?\u200d){{0,20}}{_EMOJI}\ufe0f?\u200d?\\Z")


def neutral(text: str) -> str:
    """Text in which only newlines and tabs are left of what a terminal would act on; the rest is shown as escapes.

    Emoji that are joined to one picture stay joined.
    """
    if "\u200d" not in text:
        return text.translate(_ESCAPES)
    return "\u200d".join(part.translate(_ESCAPES) for part in _JOINER.split(text))


class NeutralPieces:
    """Makes a text neutral that arrives in pieces: a joiner may come apart from the emoji it joins."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """What can be shown now: all but an emoji at the end, which may go on."""
        text = self._held + piece
        goes_on = _OPEN_EMOJI.search(text, max(0, len(text) - _LONGEST_EMOJI))
        end = goes_on.start() if goes_on else len(text)
        self._held = text[end:]
        return neutral(text[:end])

    def end(self) -> str:
        """What was held back."""
        held, self._held = self._held, ""
        return neutral(held)


def cut(text: str, limit: int) -> str:
    """Text of at most about `limit` characters, cut in the middle, saying how much is missing."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} … {len(text) - 2 * half} more characters … {text[-half:]}"


def shown(value: Any) -> str:
    """A value as Python writes it, neutral; one that refuses to be written is named by its type."""
    try:
        return neutral(_WRITTEN_JOINER.sub("\u200d", as_python(value)))
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
