"""Code in a model's text: fenced blocks with a language that can be run."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from hatchway.executors.languages import language_id
from hatchway.executors.parts import ExecutableCodePart

_OPENING = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[^`\n]*")


def code_blocks(text: str, languages: Collection[str]) -> Iterator[ExecutableCodePart]:
    """The blocks in order. A block in another language, in none, or one that never ends is prose."""
    lines = iter(text.splitlines())
    for line in lines:
        opening = _OPENING.fullmatch(line)
        if opening is None:
            continue
        block = _block(lines, opening["fence"])
        language = language_id(opening["language"])
        if block is not None and language in languages and any(map(str.strip, block)):
            yield ExecutableCodePart("\n".join(block) + "\n", language)


def fenced(text: str) -> str:
    """Text as a block that ends nowhere before its end, whatever fences it holds."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    end = "" if not text or text.endswith("\n") else "\n"
    return f"{fence}\n{text}{end}{fence}"


def _block(lines: Iterator[str], fence: str) -> list[str] | None:
    closing = re.compile(rf" {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}\s*")
    block: list[str] = []
    for line in lines:
        if closing.fullmatch(line):
            return block
        block.append(line)
    return None
