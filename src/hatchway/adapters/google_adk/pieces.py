"""A reply cut into pieces of one code block each, as ADK finds blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from google.genai import types

Delimiters = Sequence[tuple[str, str]]


def pieces_of(content: types.Content, delimiters: Delimiters) -> list[types.Content]:
    """One content per block, with the words before it; what follows the last block is left out, as ADK does.

    Native parts come first: where a reply has them, blocks in its text are prose.
    """
    parts = [part for part in content.parts or [] if not part.thought]
    thoughts = [part for part in content.parts or [] if part.thought]
    cut = _by_parts(parts) or _by_text(parts, delimiters)
    if cut:
        cut[0] = [*thoughts, *cut[0]]
    return [types.Content(role=content.role, parts=piece) for piece in cut]


def _by_parts(parts: Sequence[types.Part]) -> list[list[types.Part]]:
    """Cut after each native part that nobody has run yet."""
    pieces: list[list[types.Part]] = []
    start = 0
    for index, part in enumerate(parts):
        is_run = index + 1 < len(parts) and parts[index + 1].code_execution_result is not None
        if part.executable_code is not None and not is_run:
            pieces.append(list(parts[start : index + 1]))
            start = index + 1
    return pieces


def _by_text(parts: Sequence[types.Part], delimiters: Delimiters) -> list[list[types.Part]]:
    text = "\n".join(part.text for part in parts if part.text)
    return [[types.Part(text=piece)] for piece in _blocks(text, delimiters)]


def _blocks(text: str, delimiters: Delimiters) -> Iterator[str]:
    """The text up to the end of each block in turn."""
    while (end := _first_end(text, delimiters)) is not None:
        yield text[:end]
        text = text[end:]


def _first_end(text: str, delimiters: Delimiters) -> int | None:
    """Where the first block that has code in it ends."""
    found: list[tuple[int, int]] = []
    for opening, closing in delimiters:
        start = text.find(opening)
        end = text.find(closing, start + len(opening)) if start >= 0 else -1
        if end > start + len(opening):
            found.append((start, end + len(closing)))
    return min(found)[1] if found else None
