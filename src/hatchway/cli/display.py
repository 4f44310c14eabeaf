"""Display: text from code and tools made safe to show, and the few shapes the commands print."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories that move the cursor, reorder, hide or break text: controls, formats, surrogates, separators."""

_HIGHLIGHTED_CHARACTERS = 50_000


class _Escapes(dict[int, str]):
    """A table for `str.translate` that learns each character once."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        hidden = char not in "\n\t" and unicodedata.category(char) in _INVISIBLE
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


def value_text(value: Any, limit: int = 200) -> str:
    """A value on one line, neutral and cut."""
    return cut(neutral(repr(value)), limit)


def call_text(name: str, arguments: Mapping[str, Any], limit: int = 100) -> str:
    """A call as the code would write it, on one line."""
    inside = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"{neutral(name)}({cut(neutral(inside), limit)})"


def call_source(name: str, arguments: Mapping[str, Any], limit: int) -> tuple[str, bool]:
    """A call as Python source, one argument per line, and whether any had to be cut to `limit` characters."""
    whole = {key: neutral(repr(value)) for key, value in arguments.items()}
    lines = [f"    {neutral(key)}={cut(text, limit)},\n" for key, text in whole.items()]
    inside = "\n" + "".join(lines) if lines else ""
    return f"{neutral(name)}({inside})", any(len(text) > limit for text in whole.values())


def code_block(code: str) -> Syntax | Text:
    """Python, highlighted in the terminal's own colours; very long code is plain, which takes no time."""
    if len(code) > _HIGHLIGHTED_CHARACTERS:
        return Text(neutral(code))
    return Syntax(neutral(code), "python", theme="ansi_dark", background_color="default", word_wrap=True)


def print_line(console: Console, *parts: str | tuple[str, str], end: str = "\n") -> None:
    """Print one line of styled parts, however long, as one line: the terminal wraps it, a file keeps it whole."""
    console.print(Text.assemble(*parts), end=end, soft_wrap=True)


def make_console(*, stderr: bool = False) -> Console:
    """A console that takes text literally: nothing from a guest is ever read as markup."""
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)
