"""The two styles of calling: `f(x)` for plain tools, `await f(x)` for async ones. The wrong one is told at the call."""

from __future__ import annotations

import ast
from functools import cached_property
from itertools import accumulate

import pydantic_monty as pm

_LONGEST_PARSED = 100_000
"""Bytes of code past which only a plain `await` before the call is looked for: parsing blocks the loop."""
_NEVER_AWAITED = (
    ast.Expr, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Attribute, ast.Subscript, ast.FormattedValue, ast.AugAssign,
    ast.If, ast.While, ast.Assert, ast.Raise, ast.For, ast.comprehension,
)  # fmt: skip
"""Places in which a call's own value is used up, so that nothing can await it later."""


class Styles:
    """Looks at the place of a call in the code.

    Args:
        code: The action.
        source: What Monty names it in positions.
    """

    def __init__(self, code: str, source: str) -> None:
        self._code = code
        self._source = source

    def fault(self, name: str, stop: pm.AsyncFunctionSnapshot, *, is_async: bool) -> str:
        """What is wrong with the style of this call, naming the right one; empty when nothing is."""
        if not is_async and not self._awaits:
            return ""
        position = stop.position
        if position.filename != self._source:
            return ""
        if self._is_awaited(position.start):
            return "" if is_async else f"{name} is a plain function: call it as {name}(...), without await"
        if is_async and (position.start, position.end) in self._lost:
            return not_awaited(name)
        return ""

    def line_of(self, position: pm.SourceRange) -> tuple[int, str] | None:
        """The number and the text of the line a position is in; None when it is in other code."""
        if position.filename != self._source:
            return None
        number = self._bytes.count(b"\n", 0, position.start) + 1
        return number, self._code.split("\n")[number - 1].strip()

    @cached_property
    def _awaits(self) -> bool:
        return "await" in self._code

    @cached_property
    def _bytes(self) -> bytes:
        return self._code.encode()

    def _is_awaited(self, start: int) -> bool:
        before = self._bytes[max(0, start - 80) : start].rstrip(b" \t")
        return before.endswith(b"await") and not before[-6:-5].isalnum() and before[-6:-5] != b"_"

    @cached_property
    def _lost(self) -> frozenset[tuple[int, int]]:
        """Where calls stand of which nobody can await the value."""
        if len(self._bytes) > _LONGEST_PARSED:
            return frozenset()
        try:
            tree = ast.parse(self._bytes)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return frozenset()  # Monty takes syntax that this Python does not
        lines = [0, *accumulate(len(line) for line in self._bytes.splitlines(keepends=True))]
        return frozenset(
            (lines[call.lineno - 1] + call.col_offset, lines[(call.end_lineno or 1) - 1] + (call.end_col_offset or 0))
            for parent in ast.walk(tree)
            if isinstance(parent, _NEVER_AWAITED)
            for call in ast.iter_child_nodes(parent)
            if isinstance(call, ast.Call)
        )


def not_awaited(name: str) -> str:
    """What the code is told about an async call nobody awaits."""
    return f"{name} is async: call it as await {name}(...)"
