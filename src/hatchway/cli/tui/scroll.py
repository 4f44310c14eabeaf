"""Scroll: blocks painted above the screen, where they stay. Long ones are folded, and kept whole."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import StringIO

from rich.console import Console

from hatchway.trace.blocks import Block, Code, Line, Part, Prose, Said
from hatchway.trace.terminal import Painter
from hatchway.trace.text import cut

OUTPUT_LINES, CODE_LINES = 12, 400
"""How many lines of one output and of one piece of code are shown before the rest is folded."""
LINE_CHARACTERS, LINE_ROWS, PART_CHARACTERS = 2_000, 4, 600
"""How much of one line is shown, and on how many lines of the terminal at most."""
KEPT_CHARACTERS = 4_000_000
"""How much of a conversation can be read whole."""


class Scroll:
    """Paints blocks.

    Args:
        print_: Puts text above the screen.
        width: Its columns, now.
        live: Is given what the code printed of a line it has not ended.
    """

    def __init__(
        self, print_: Callable[[str], None], width: Callable[[], int], live: Callable[[str], None] = lambda text: None
    ) -> None:
        self._print, self._width, self._live = print_, width, live
        self._whole: deque[Block] = deque()
        self._kept = 0
        self._open = ""
        self._source: Said | None = None
        self._shown = self._hidden = 0
        self._last: Block | None = None

    def add(self, blocks: Sequence[Block]) -> None:
        """Paint blocks."""
        for block in blocks:
            self._keep(block)
            if isinstance(block, Said):
                self._say(block)
            else:
                self.close()
                self._paint([_folded(block)])

    def close(self) -> None:
        """What the code printed ends here."""
        if self._open and self._source is not None:
            self._lines([self._open + "\n"], self._source)
        if self._hidden:
            lines = "1 more line" if self._hidden == 1 else f"{self._hidden:,} more lines"
            self._paint([Line(mark="…", tone="dim", parts=[Part(f"{lines} · Ctrl+O shows all", "dim")])])
        self._open, self._source, self._shown, self._hidden = "", None, 0, 0
        self._live("")

    def whole(self) -> str:
        """Everything, nothing folded, as plain text."""
        paper = StringIO()
        console = _console(paper, self._width() - 1, colours=False)
        painter = Painter(console, whole=True)
        for block in self._whole:
            painter.paint(block)
        painter.end_line()
        return "\n".join(line.rstrip() for line in paper.getvalue().split("\n"))

    def _say(self, said: Said) -> None:
        if self._source is not None and self._source.source != said.source and self._open:
            self._lines([self._open + "\n"], self._source)
            self._open = ""
        self._source = said
        lines = (self._open + said.text).splitlines(keepends=True)
        self._open = lines.pop() if lines and not lines[-1].endswith("\n") else ""
        self._lines(lines, said)
        self._live(self._open[-LINE_CHARACTERS:])

    def _lines(self, lines: list[str], said: Said) -> None:
        room = max(OUTPUT_LINES - self._shown, 0)
        self._shown += len(lines[:room])
        self._hidden += len(lines[room:])
        most = min(LINE_CHARACTERS, LINE_ROWS * self._width())
        self._paint([replace(said, text=cut(line.rstrip("\n"), most) + "\n") for line in lines[:room]])

    def _paint(self, blocks: Sequence[Block]) -> None:
        if not blocks:
            return
        paper = StringIO()
        painter = Painter(_console(paper, self._width(), colours=True))
        painter.last = self._last
        for block in blocks:
            painter.paint(block)
        self._last = painter.last
        self._print(paper.getvalue())

    def _keep(self, block: Block) -> None:
        self._whole.append(block)
        self._kept += _size(block)
        while self._kept > KEPT_CHARACTERS and len(self._whole) > 1:
            self._kept -= _size(self._whole.popleft())


def _console(paper: StringIO, width: int, *, colours: bool) -> Console:
    return Console(
        file=paper, width=width, force_terminal=True, markup=False, emoji=False, highlight=False,
        color_system="auto" if colours else None,
    )  # fmt: skip


def _folded(block: Block) -> Block:
    """A line, code or prompt that fits on a few screens; what is cut says so, in the middle of it."""
    if isinstance(block, Line):
        return replace(block, parts=[Part(cut(text, PART_CHARACTERS), tone) for text, tone in block.parts])
    match block:
        case Code(text=text):
            return replace(block, text=_few_lines(text, CODE_LINES, "# "))
        case Prose(text=text) if block.who:
            return replace(block, text=cut(_few_lines(text, OUTPUT_LINES), LINE_CHARACTERS))
        case _:
            return block


def _few_lines(text: str, most: int, mark: str = "") -> str:
    lines, half = text.splitlines(), most // 2
    if len(lines) <= most:
        return text
    return "\n".join(
        [*lines[:half], f"{mark}… {len(lines) - 2 * half:,} more lines: Ctrl+O shows all …", *lines[-half:]]
    )


def _size(block: Block) -> int:
    match block:
        case Code(text=text) | Prose(text=text) | Said(text=text):
            return len(text) + 100
        case Line(whole=whole):
            return 200 + sum(len(text) for _, text in whole)
        case _:
            return 100
