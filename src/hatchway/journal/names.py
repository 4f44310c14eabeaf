"""Names of arguments: a call is stored as the code made it, and told with each argument under its parameter's name."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from hatchway.core.calls import FunctionCall, FunctionSignature


class ArgumentNames:
    """Knows the parameters of a run's tools, from their stubs.

    Args:
        functions: As the head of the run has them.
    """

    def __init__(self, functions: Iterable[FunctionSignature]) -> None:
        self._stubs = {function.name: function.stub for function in functions}
        self._known: dict[str, tuple[str, ...]] = {}

    def named(self, call: FunctionCall) -> FunctionCall:
        """The call with its arguments by name; those that have none stay as they are."""
        if not call.args:
            return call
        names = self._parameters(call.function_name)[: len(call.args)]
        if any(name in call.kwargs for name in names):
            return call  # given twice: the gate refused it, and it is told as it came
        by_place = dict(zip(names, call.args, strict=False))
        return replace(call, args=call.args[len(names) :], kwargs={**by_place, **call.kwargs})

    def _parameters(self, tool: str) -> tuple[str, ...]:
        if tool not in self._known:
            self._known[tool] = _parameters(self._stubs.get(tool, ""))
        return self._known[tool]


def _parameters(stub: str) -> tuple[str, ...]:
    try:
        tree = ast.parse(stub)
    except (SyntaxError, ValueError):
        return ()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return tuple(each.arg for each in (*node.args.posonlyargs, *node.args.args) if each.arg != "self")
    return ()
