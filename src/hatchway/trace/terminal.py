"""Blocks on a terminal, with or without colours, or in a pipe; and, by rich's recorder, in a picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib.resources import files
from io import StringIO
from typing import TYPE_CHECKING, assert_never

from rich.cells import chop_cells
from rich.console import Console
from rich.panel import Panel
from rich.segment import Segment, Segments
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from hatchway.trace.blocks import WHO, Block, Code, Line, Part, Picture, Prose, Said, Tone
from hatchway.trace.markdown import markdown_parser
from hatchway.trace.text import cut, elapsed_text, neutral

if TYPE_CHECKING:
    from rich.markdown import Markdown

STYLES: dict[Tone, str] = {
    "": "",
    "dim": "dim",
    "bold": "bold",
    "good": "green",
    "bad": "red",
    "warn": "yellow",
    "accent": "cyan",
}
GUTTER = "│ "
"""Stands before each line the code prints, so that output cannot pass for our own words."""
TIME_COLUMNS, NARROW_COLUMNS = 9, 60
"""What times take, and below how many columns they are left out: the room is needed for what is said."""
PICTURE_COLUMNS, PICTURE_SAID, PICTURE_LINES = 100, 20_000, 200
"""The width of a picture, and how many characters and lines of one output or action it shows."""
_HIGHLIGHTED_CHARACTERS = 50_000


class Painter:
    """Prints blocks one after the other.

    Args:
        console: Where to.
        whole: Print also what had to be cut to fit on a line.
    """

    def __init__(self, console: Console, *, whole: bool = False) -> None:
        self._console = console
        self._whole = whole
        self._line_open = False
        self._indent = "" if console.is_terminal and console.width < NARROW_COLUMNS else " " * (TIME_COLUMNS + 1)
        self.last: Block | None = None
        """What was printed last."""

    def paint(self, block: Block) -> None:
        """Print one block."""
        last, self.last = self.last, block
        match block:
            case Said():
                self._said(block)
            case Line():
                self.end_line()
                self._line(block)
            case Code():
                self.end_line()
                title = Text(f"{block.what} · {block.about}" if block.about else block.what)
                source = code_block(block.text.rstrip("\n"), block.language)
                self._console.print(Panel(source, border_style="dim", title=title, title_align="left"))
            case Prose(text=text, who=who):
                self.end_line()
                is_named = isinstance(last, Line) and last.mark == WHO
                self._console.print("", end="" if is_named else "\n")
                if who:
                    self._console.print(Text.assemble((who, "bold cyan"), f" {text}"))
                else:
                    self._console.print(self._prose(text), end="")
            case Picture(name=name):
                self.end_line()
                self._line(Line(mark="+", tone="good", parts=[Part(name), Part("  picture", "dim")]))
            case _:
                assert_never(block)

    def end_line(self) -> None:
        """Close a line that the code left open, before somebody else prints."""
        if self._line_open:
            self._console.print()
            self._line_open = False

    def _line(self, line: Line) -> None:
        time = "" if line.at is None else elapsed_text(line.at)
        said = Text.assemble(*((text, STYLES[tone]) for text, tone in line.parts))
        if self._console.is_terminal:
            row = Table.grid(padding=(0, 1))
            if self._indent:
                row.add_column(width=TIME_COLUMNS, justify="right", style="dim")
            row.add_column(width=1)
            row.add_column(overflow="fold")
            row.add_row(*([time] if self._indent else []), Text(line.mark, STYLES[line.tone]), said)
            self._console.print(row)
        else:
            head = Text.assemble(f"{time:>{TIME_COLUMNS}} {line.mark} ")
            self._console.print(head + said, soft_wrap=True)
        for label, text in line.whole if self._whole else ():
            self._said(Said(text=f"{label}: {text}\n", source="stdout"))

    def _said(self, said: Said) -> None:
        style = "" if said.source == "stdout" else "red"
        for line in said.text.splitlines(keepends=True):
            start = "" if self._line_open else self._indent + GUTTER
            self._console.print(Text.assemble((start, "dim"), (line, style)), end="", soft_wrap=True)
            self._line_open = not line.endswith("\n")

    def _prose(self, text: str) -> Segments:
        """Markdown without the empty lines around it, and without the space that fills its lines."""
        lines = [_trimmed(line) for line in self._console.render_lines(prose(text), pad=False)]
        while lines and not lines[-1]:
            lines.pop()
        while lines and not lines[0]:
            lines.pop(0)
        return Segments([each for line in lines for each in (*line, Segment.line())])


def _trimmed(line: list[Segment]) -> list[Segment]:
    kept = list(line)
    while kept and not kept[-1].text.strip():
        kept.pop()
    return [*kept[:-1], Segment(kept[-1].text.rstrip(), kept[-1].style)] if kept else []


def code_block(code: str, language: str = "python") -> Syntax | Text:
    """Source, highlighted in the terminal's own colours; very long code is plain, which takes no time."""
    if len(code) > _HIGHLIGHTED_CHARACTERS:
        return Text(neutral(code))
    return Syntax(neutral(code), language, theme="ansi_dark", background_color="default", word_wrap=True)


def prose(text: str) -> Markdown | Text:
    """Markdown; links show where they lead, tags are text like any other. Very long prose is plain."""
    from hatchway.trace.calm_markdown import CalmMarkdown  # most commands have none to show

    if len(text) > _HIGHLIGHTED_CHARACTERS:
        return Text(neutral(text))
    shown = CalmMarkdown("", code_theme="ansi_dark", hyperlinks=False)
    shown.markup, shown.parsed = neutral(text), markdown_parser().parse(neutral(text))
    return shown


def print_line(console: Console, *parts: str | tuple[str, str], end: str = "\n") -> None:
    """Print one line of styled parts, however long, as one line: the terminal wraps it, a file keeps it whole."""
    console.print(Text.assemble(*parts), end=end, soft_wrap=True)


def picture(blocks: Iterable[Block], *, title: str) -> str:
    """The blocks as an SVG: what a terminal would show, in a file that needs nothing else."""
    console = Console(
        record=True, file=StringIO(), width=PICTURE_COLUMNS, force_terminal=True, color_system="truecolor",
        markup=False, emoji=False, highlight=False, legacy_windows=False, _environ={},
    )  # fmt: skip
    painter = Painter(console)
    for block in blocks:
        painter.paint(_shortened(block))
    painter.end_line()
    frame = (files("hatchway.trace") / "picture.svg").read_text(encoding="utf-8")
    return console.export_svg(title=neutral(title), code_format=frame)


def _folded(text: str) -> str:
    """Lines that fit: a picture has no terminal that would wrap them."""
    room = PICTURE_COLUMNS - TIME_COLUMNS - 1 - len(GUTTER)
    lines = [piece for line in text.expandtabs().splitlines() for piece in chop_cells(line, room) or [""]]
    return "\n".join(lines) + ("\n" if text.endswith("\n") else "")


def _few_lines(text: str) -> str:
    lines, half = text.splitlines(keepends=True), PICTURE_LINES // 2
    if len(lines) <= PICTURE_LINES:
        return text
    return "".join([*lines[:half], f"… {len(lines) - 2 * half} more lines …\n", *lines[-half:]])


def _shortened(block: Block) -> Block:
    match block:
        case Said(text=text, source=source):
            return Said(text=_few_lines(_folded(cut(text, PICTURE_SAID))), source=source)
        case Code(text=text) | Prose(text=text):
            return replace(block, text=_few_lines(cut(text, PICTURE_SAID)))
        case _:
            return block
