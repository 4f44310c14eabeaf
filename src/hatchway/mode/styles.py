"""Styles: whether an action awaits a tool or just calls it, read from the action itself."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

from hatchway.core.calls import FunctionSignature
from hatchway.tools.functions import Tool
from hatchway.tools.stubs import Style, render_stubs

MOST_STUBS = 64
"""Texts of stubs kept, one per choice of awaited tools."""

_GATHERED = (ast.List, ast.Tuple, ast.Set, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp, ast.Starred)
_SCHEDULERS = frozenset(["gather", "create_task", "ensure_future", "wait", "wait_for", "run", "as_completed", "append"])


class WrittenStyles:
    """Signatures and stubs of tools, in the style each action has.

    Args:
        tools: By name.
        has_stubs: Whether stubs are wanted.
    """

    def __init__(self, tools: Mapping[str, Tool], *, has_stubs: bool) -> None:
        self._tools, self._has_stubs = tools, has_stubs
        self._stubs: dict[frozenset[str], str] = {}

    def __call__(self, code: str) -> tuple[tuple[FunctionSignature, ...], str | None]:
        """What this action is given."""
        awaited = awaited_names(code, self._tools)
        styles: dict[str, Style] = {name: "async" if name in awaited else "sync" for name in self._tools}
        signatures = tuple(tool.signature(style=styles[tool.name]) for tool in self._tools.values())
        if not self._has_stubs:
            return signatures, None
        if awaited not in self._stubs:
            if len(self._stubs) >= MOST_STUBS:
                self._stubs.clear()
            self._stubs[awaited] = render_stubs(self._tools.values(), styles)
        return signatures, self._stubs[awaited]


def awaited_names(code: str, names: Collection[str]) -> frozenset[str]:
    """The names among these that the code awaits, or collects to be awaited; none where it does not parse.

    A name that is awaited somewhere counts as awaited everywhere.
    """
    if "await" not in code and "asyncio" not in code:
        return frozenset()
    try:
        tree = ast.parse(code.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()  # the sandbox says what is wrong with it
    uses_asyncio = any(isinstance(node, ast.Await) or _is_asyncio(node) for node in ast.walk(tree))
    if not uses_asyncio:
        return frozenset()
    return frozenset(name for name, is_awaited in _uses(tree, frozenset(names)) if is_awaited)


def _is_asyncio(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "asyncio"


def _uses(tree: ast.AST, names: Collection[str]) -> Iterator[tuple[str, bool]]:
    """Each call of one of the names, and whether something awaits it, sooner or later."""
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, is_awaited = waiting.pop()
        if isinstance(node, ast.Call) and (name := _dotted(node.func)) in names:
            yield name, is_awaited
        for field, value in ast.iter_fields(node):
            inside = _hands_on(node, field, is_awaited)
            children: list[Any] = cast(list[Any], value) if isinstance(value, list) else [value]
            waiting += [(child, inside) for child in children if isinstance(child, ast.AST)]


def _hands_on(node: ast.AST, field: str, is_awaited: bool) -> bool:
    """Whether what stands in this field of the node is awaited, directly or with others."""
    if isinstance(node, ast.Await):
        return True
    if isinstance(node, _GATHERED):
        return field in ("elt", "elts", "value")
    if isinstance(node, ast.Call) and field == "args":
        return _dotted(node.func).rpartition(".")[2] in _SCHEDULERS
    return is_awaited and isinstance(node, ast.IfExp | ast.NamedExpr)


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        outer = _dotted(node.value)
        return f"{outer}.{node.attr}" if outer else node.attr
    return node.id if isinstance(node, ast.Name) else ""
