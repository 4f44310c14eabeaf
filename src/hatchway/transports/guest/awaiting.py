"""Actions that await nothing but tools, one after the other: they need no event loop.

Making one costs a fresh process as much as all the rest of a small action. Without a loop a call of an async tool
blocks, as a plain one does; the action cannot tell the difference, because it has nothing else to do meanwhile.
"""

import ast
import sys

from .tools import AsyncTool

_LOOPING = frozenset(
    ("asyncio", "concurrent", "contextvars", "eval", "exec", "globals", "locals", "vars", "__import__")
)
"""Names by which code can come to a loop, or see its context, in ways that are not looked at."""
_ASYNC = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Global)


def calls_awaited(tree):
    """The names whose calls are all that the code awaits; None where it may need a loop for anything else."""
    awaited, bound, waiting = set(), set(), [tree]
    while waiting:  # not by `ast.walk`: it imports, and each page it touches is copied in a fresh process
        node = waiting.pop()
        kind = type(node)
        if kind is ast.Name:
            if node.id in _LOOPING:
                return None
            if type(node.ctx) is not ast.Load:
                bound.add(node.id)
        elif kind is ast.Await:
            awaited.add(_called(node.value))
        elif kind is ast.Import or kind is ast.ImportFrom:
            if not _is_harmless(node):
                return None
            bound.update(alias.asname or alias.name for alias in node.names)
        elif kind is ast.FunctionDef or kind is ast.ClassDef:
            bound.add(node.name)
        elif kind is ast.arg:
            bound.add(node.arg)
        elif kind in _ASYNC or (kind is ast.comprehension and node.is_async):
            return None
        _add_children(node, waiting)
    return None if "" in awaited or any(name.partition(".")[0] in bound for name in awaited) else awaited


def _add_children(node, waiting):
    for name in node._fields:
        value = getattr(node, name, None)
        if type(value) is list:
            waiting += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            waiting.append(value)


def are_tools(names, namespace):
    """Whether all of these stand for async tools."""
    return all(type(_found(name, namespace)) is AsyncTool for name in names)


def run(coroutine):
    """The value of a coroutine that never waits for a loop."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    coroutine.close()
    raise RuntimeError("the code awaited something that needs an event loop, under the name of a tool")


def _called(node):
    """The name of what is called, with its dots; empty for anything else."""
    if type(node) is not ast.Call:
        return ""
    parts, node = [], node.func
    while type(node) is ast.Attribute:
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if type(node) is ast.Name else ""


def _found(name, namespace):
    first, *rest = name.split(".")
    value = namespace.get(first)
    for part in rest:
        value = getattr(value, "__dict__", {}).get(part)
    return value


def _is_harmless(node):
    """Whether only modules of the standard library are imported, and none that has to do with loops."""
    names = [node.module or ""] if type(node) is ast.ImportFrom else [alias.name for alias in node.names]
    known = getattr(sys, "stdlib_module_names", ())
    roots = [name.partition(".")[0] for name in names]
    return all(root in known and root not in _LOOPING for root in roots)
