"""Wrapping: a line as lines that fit a terminal, broken between words; wide characters count as they are drawn."""

from __future__ import annotations

import re
from collections.abc import Iterator

from prompt_toolkit.utils import get_cwidth

_WORD = re.compile(r"\[\S+\] \S+ *|\S+ *| +")
"""A word with the space after it; a key in brackets stays with what it does."""


def wrapped(line: str, columns: int) -> list[str]:
    """The line in pieces of at most so many columns; a word that is wider is broken."""
    columns, lines, used = max(columns, 2), [""], 0
    for word in _WORD.findall(line.expandtabs(4)):
        for piece in _pieces(word, columns):
            if used and used + get_cwidth(piece.rstrip(" ")) > columns:
                lines, used = [*lines, ""], 0
            lines[-1] += piece
            used += get_cwidth(piece)
    return [line.rstrip(" ") for line in lines]


def _pieces(word: str, columns: int) -> Iterator[str]:
    if get_cwidth(word.rstrip(" ")) <= columns:
        yield word
        return
    piece = ""
    for character in word:
        if piece and get_cwidth(piece + character) > columns:
            yield piece
            piece = ""
        piece += character
    yield piece
