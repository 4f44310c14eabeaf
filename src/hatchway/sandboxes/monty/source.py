"""The code of an action, looked at from the host: in which style a call is written, and how the code ends.

Calls have two styles: `f(x)` for plain tools, `await f(x)` for async ones. The wrong one is told at the call.
"""

from __future__ import annotations

import ast
import re
from functools import cached_property
from itertools import accumulate

import pydantic_monty as pm

_LONGEST_PARSED = 100_000
"""Bytes of code past which it is not parsed on the host: that would block the loop."""
_NEVER_AWAITED = (
    ast.Expr, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Attribute, ast.Subscript, ast.FormattedValue, ast.AugAssign,
    ast.If, ast.While, ast.Assert, ast.Raise, ast.For, ast.comprehension,
)  # fmt: skip
"""Places in which a call's own value is used up, so that nothing can await it later."""
_DROPPED = re.compile(r"pass|global|from __future__|:")
"""What stands in the last line when it is a statement that Monty drops, and perhaps otherwise too."""


class Source:
    """The code of one action.

    Args:
        code: As given.
        name: What Monty calls it in positions.
    """

    def __init__(self, code: str, name: str) -> None:
        self._code = code
        self._name = name

    def style_fault(self, tool: str, stop: pm.FunctionSnapshot, *, is_async: bool) -> str:
        """What is wrong with the style of this call, naming the right one; empty when nothing is."""
        if stop.allow_eager_await if is_async else not self._has_await:
            return ""
        position = stop.position
        if position.filename != self._name:
            return ""
        if self._is_awaited(position.start):
            return "" if is_async else f"{tool} is a plain function: call it as {tool}(...), without await"
        if is_async and (position.start, position.end) in self._lost:
            return not_awaited(tool)
        return ""

    def line_of(self, position: pm.SourceRange) -> tuple[int, str] | None:
        """The number and the text of the line a position is in; None when it is in other code."""
        if position.filename != self._name:
            return None
        number = self._bytes.count(b"\n", 0, position.start) + 1
        return number, self._code.split("\n")[number - 1].strip()

    @property
    def ends_in_expression(self) -> bool:
        """Whether the last statement is an expression, so that it has a value.

        Monty drops `pass` and bare declarations, and gives the value of the statement before.
        """
        last = self._code.rstrip().rpartition("\n")[2]
        if not _DROPPED.search(last) and not last.startswith("#"):
            return True
        return self._tree is None or not self._tree.body or isinstance(self._tree.body[-1], ast.Expr)

    @cached_property
    def _has_await(self) -> bool:
        return "await" in self._code

    @cached_property
    def _bytes(self) -> bytes:
        return self._code.encode()

    def _is_awaited(self, start: int) -> bool:
        before = self._bytes[max(0, start - 80) : start].rstrip(b" \t")
        return before.endswith(b"await") and not before[-6:-5].isalnum() and before[-6:-5] != b"_"

    @cached_property
    def _tree(self) -> ast.Module | None:
        """None when it is too long, or in syntax that Monty takes and this Python does not."""
        if len(self._bytes) > _LONGEST_PARSED:
            return None
        try:
            return ast.parse(self._bytes)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    @cached_property
    def _lost(self) -> frozenset[tuple[int, int]]:
        """Where calls stand of which nobody can await the value."""
        lines = [0, *accumulate(len(line) for line in self._bytes.splitlines(keepends=True))]
        return frozenset(
            (lines[call.lineno - 1] + call.col_offset, lines[(call.end_lineno or 1) - 1] + (call.end_col_offset or 0))
            for parent in (ast.walk(self._tree) if self._tree else ())
            if isinstance(parent, _NEVER_AWAITED)
            for call in ast.iter_child_nodes(parent)
            if isinstance(call, ast.Call)
        )


def not_awaited(tool: str) -> str:
    """What the code is told about an async call nobody awaits."""
    return f"{tool} is async: call it as await {tool}(...)"
