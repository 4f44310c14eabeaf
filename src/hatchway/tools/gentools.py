"""Saved tools: a code action that worked becomes `gentools/<category>/<tool>/{__init__,api,impl}.py`.

The code is parsed here and never run: it runs where it ran before, in a sandbox that shows the folder.
"""

from __future__ import annotations

import ast
import builtins
import os
import re
from copy import copy
from importlib.resources import files
from pathlib import Path
from symtable import SymbolTable, symtable

from hatchway.core.errors import ToolError
from hatchway.tools.functions import Tool
from hatchway.tools.mcp.naming import as_identifier
from hatchway.tools.search.saved import FOLDER

_MAX_BYTES = 200_000
_VERSION = re.compile(r"^VERSION = (\d+)$", re.M)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def save_tool(
    name: str,
    code: str,
    category: str = "saved",
    description: str = "",
    *,
    new_version: bool = False,
    root: Path | str = ".",
) -> str:
    """Save code as a tool.

    Args:
        name: Of the tool, an identifier.
        code: Python that defines a function `run`, or one of the tool's name; what it takes and gives is annotated.
        category: The folder it goes to, an identifier.
        description: What it does; by default the function's docstring, which must be there otherwise.
        new_version: Whether it may replace a tool of that name; the old version is kept beside it.
        root: Where `gentools` lies.

    Returns:
        How it is imported.

    Raises:
        ToolError: A name is no identifier, the code does not define such a function, or the tool is there already.
    """
    for word in (name, category):
        if as_identifier(word) != word or word.startswith("_"):
            raise ToolError(f"{word!r} is no identifier", hint=f"take {as_identifier(word)!r}")
    run = _function(name, code)
    said = description.strip() or (ast.get_docstring(run) or "").strip()
    if not said:
        raise ToolError("a saved tool says what it does: give the function a docstring, or a description")
    folder = Path(root) / FOLDER / category / name
    version = _next_version(folder, f"{category}.{name}", new_version=new_version)
    if version > 1:
        _keep(folder, version - 1)
    folder.mkdir(parents=True, exist_ok=True)
    (folder.parent / "__init__.py").touch()
    (folder.parent.parent / "__init__.py").touch()
    _write(folder / "impl.py", code if code.endswith("\n") else f"{code}\n")
    _write(folder / "api.py", _api(run, said, version, code))
    _write(folder / "__init__.py", f'from .api import VERSION, {run.name}\n\n__all__ = ["VERSION", "{run.name}"]\n')
    return f"from {FOLDER}.{category}.{name} import {run.name}"


def save_tool_tool(root: Path | str = ".") -> Tool:
    """`save_tool` as a tool of the code, which asks first: what is saved is there for later runs."""

    def save_tool_(
        name: str, code: str, category: str = "saved", description: str = "", new_version: bool = False
    ) -> str:
        return save_tool(name, code, category, description, new_version=new_version, root=root)

    said = (
        "Save code that worked as a tool for later: it defines an annotated `run(...)` with a docstring.\n\n"
        "Returns the line that imports it. A tool that is there already is replaced only with new_version=True."
    )
    return Tool.from_function(save_tool_, name="save_tool", description=said, approval="ask")


def _function(name: str, code: str) -> Function:
    if len(code) > _MAX_BYTES:
        raise ToolError(f"the code of a tool has at most {_MAX_BYTES} characters")
    try:
        body = ast.parse(code).body
        compile(
            code, "<tool>", "exec", dont_inherit=True
        )  # what parses need not be a module: `await`, two parameters `a`
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        told = f"{e.msg}, line {e.lineno}" if isinstance(e, SyntaxError) else e  # not a file it does not have
        raise ToolError(f"the code cannot be saved: {told}") from None
    found = {node.name: node for node in body if isinstance(node, Function)}
    run = found.get("run") or found.get(name)
    if run is None:
        raise ToolError(f"the code defines neither a function `run` nor one named {name!r}")
    return run


def _next_version(folder: Path, name: str, *, new_version: bool) -> int:
    try:
        told = _VERSION.search((folder / "api.py").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return 1
    if not new_version:
        raise ToolError(f"the tool {name} is there already", hint="take another name, or new_version=True")
    return int(told[1]) + 1 if told else 2  # somebody wrote it by hand: it is the first


def _keep(folder: Path, version: int) -> None:
    kept = folder / f"v{version}"
    kept.mkdir(exist_ok=True)
    for file in ("api.py", "impl.py", "__init__.py"):
        # one that is kept is not replaced: who was killed amid saving left a newer file under the old number
        if (folder / file).exists() and not (kept / file).exists():
            _write(kept / file, (folder / file).read_text(encoding="utf-8"))


def _bound(table: SymbolTable) -> set[str]:
    return {each.get_name() for each in table.get_symbols() if each.is_assigned() or each.is_imported()}


def _used(run: Function, table: SymbolTable) -> list[str]:
    """The names of the code that the function's head needs: types of its annotations, constants of its defaults."""
    parts = [part for part in (run.args, run.returns) if part is not None]
    named = {node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}
    return sorted(named & _bound(table))


def _borrowed(table: SymbolTable) -> list[str]:
    """The names the code takes from outside, which are those of tools: a module has none of the action's globals."""
    tables, wanted = [table], set[str]()
    while tables:
        part = tables.pop()
        tables += part.get_children()
        wanted |= {each.get_name() for each in part.get_symbols() if each.is_global() and each.is_referenced()}
    return sorted(wanted - _bound(table) - set(dir(builtins)))


def _api(run: Function, said: str, version: int, code: str) -> str:
    """The interface: the function's own head, its docstring, and a call of what implements it."""
    table = symtable(code, "<tool>", "exec")
    is_async = isinstance(run, ast.AsyncFunctionDef)
    called = ast.Call(ast.Name("_impl"), *_passed_on(run.args))
    value = ast.Await(called) if is_async else called
    head = copy(run)  # with whatever fields this Python's functions have
    borrowed = _borrowed(table)
    lend = [ast.Expr(ast.Call(ast.Name("_lend"), [], []))] if borrowed else []
    head.body, head.decorator_list = [ast.Expr(ast.Constant(said)), *lend, ast.Return(value)], []
    text = ast.unparse(ast.fix_missing_locations(head))
    needed = "".join(f"from .impl import {name}\n" for name in _used(run, table))
    needed += "from . import impl as _code\n" if borrowed else ""
    imports = f"from __future__ import annotations\n\n{needed}from .impl import {run.name} as _impl"
    return f"{imports}\n\nVERSION = {version}\n\n\n{text}\n{_lending(borrowed)}"


def _lending(names: list[str]) -> str:
    """The part of an interface that lends the code the tools of the action; at each call, for they are its own."""
    if not names:
        return ""
    text = files("hatchway.tools").joinpath("lending_module.py").read_text(encoding="utf-8")
    return "\n\n" + text[text.index("def lend") :].replace("def lend", "def _lend").replace(
        "_NAMES", repr(tuple(names))
    )


def _passed_on(args: ast.arguments) -> tuple[list[ast.expr], list[ast.keyword]]:
    positional: list[ast.expr] = [ast.Name(each.arg) for each in (*args.posonlyargs, *args.args)]
    if args.vararg:
        positional.append(ast.Starred(ast.Name(args.vararg.arg)))
    named = [ast.keyword(each.arg, ast.Name(each.arg)) for each in args.kwonlyargs]
    return positional, [*named, *([ast.keyword(None, ast.Name(args.kwarg.arg))] if args.kwarg else [])]


def _write(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
