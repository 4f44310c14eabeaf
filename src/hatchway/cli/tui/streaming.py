"""Streaming: Markdown as it arrives, cut where one block ends and the next begins."""

from __future__ import annotations

from itertools import chain

from hatchway.trace.text import NeutralPieces

LONGEST_BLOCK = 20_000
"""Characters after which a block is taken as whole at the end of a line."""


class MarkdownStream:
    """Takes pieces of a reply, gives back its blocks as they become whole, safe to show."""

    def __init__(self) -> None:
        self._pieces = NeutralPieces()
        self._lines: list[str] = []
        self._size = 0
        self._line: list[str] = []
        self._fence = ""
        self._is_blank = False

    @property
    def rest(self) -> str:
        """What is not whole yet."""
        return "".join([*self._lines, *self._line])

    def tail(self, characters: int) -> str:
        """The last of what is not whole yet; cheap, however long a line has become."""
        pieces: list[str] = []
        for piece in chain(reversed(self._line), reversed(self._lines)):
            pieces.append(piece)
            characters -= len(piece)
            if characters <= 0:
                break
        return "".join(reversed(pieces))

    def feed(self, piece: str) -> list[str]:
        """The blocks that are whole now."""
        return self._cut_up(self._pieces.feed(piece))

    def _cut_up(self, piece: str) -> list[str]:
        blocks: list[str] = []
        for line in piece.splitlines(keepends=True):
            self._line.append(line)
            if line.endswith("\n"):
                whole = "".join(self._line)
                self._line = []
                blocks += self._take(whole)
        return blocks

    def end(self) -> str:
        """The rest, which is whole now."""
        rest = self.rest + self._pieces.end()
        self.__init__()
        return rest

    def _take(self, line: str) -> list[str]:
        begins = self._is_blank and bool(line.strip()) and not line[0].isspace() and not self._fence
        done = [self._cut()] if begins or self._size > LONGEST_BLOCK else []
        self._lines.append(line)
        self._size += len(line)
        self._is_blank = not line.strip()
        mark = line.lstrip()[:3]
        if self._fence:
            self._fence = "" if mark == self._fence and not line.strip().strip(mark[0]) else self._fence
        elif mark in ("```", "~~~"):
            self._fence = mark
        return [block for block in done if block.strip()]

    def _cut(self) -> str:
        block = "".join(self._lines)
        self._lines, self._size = [], 0
        return block
