"""Tables: numbers as Markdown, each target beside what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One published number: what it must be, and what it was."""

    what: str
    limit: float
    values: Sequence[float] = ()
    """One per column of its section; none when it could not be measured here."""
    judged: int = 0
    """Which of the values decides."""
    unit: str = ""
    at_least: bool = False
    """The limit is a floor and not a ceiling."""

    @property
    def verdict(self) -> str:
        """Whether the number is what it must be."""
        if not self.values:
            return "not measured"
        value = self.values[self.judged]
        return "met" if (value >= self.limit if self.at_least else value <= self.limit) else "**NOT met**"

    def cells(self, columns: int) -> list[str]:
        """Its row."""
        wanted = f"{'≥' if self.at_least else '≤'} {self._shown(self.limit)}"
        shown = [self._shown(value) for value in self.values]
        return [self.what, wanted, *shown, *["–"] * (columns - len(shown)), self.verdict]

    def _shown(self, value: float) -> str:
        return f"{f'{value:.2f}'.rstrip('0').rstrip('.')}{self.unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One group of numbers: how they were taken, what everybody got, and our targets."""

    title: str
    note: str
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    columns: Sequence[str] = ("min", "median")
    """What the values of its targets are."""
    targets: Sequence[Target] = ()

    def markdown(self) -> str:
        """The section as text."""
        parts = [f"## {self.title}", self.note]
        if self.rows:
            parts.append(table(self.head, self.rows))
        if self.targets:
            cells = [target.cells(len(self.columns)) for target in self.targets]
            parts.append(table(["number", "target", *self.columns, "verdict"], cells))
        return "\n\n".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def duration(seconds: float) -> str:
    """Seconds as a person reads them."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.{2 if seconds < 0.01 else 1}f} ms"
    return f"{seconds:.2f} s"


def times(value: float) -> str:
    """A ratio."""
    return f"{value:.2f}×"
