"""Constraints: which Python a sandbox really runs. Defaults say full Python."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeConstraints:
    """What code may use in a sandbox. The prompt is built from these flags; tests probe each one."""

    supports_imports: bool = True
    """`import` of at least some standard modules."""
    supports_while_loops: bool = True
    """`while`."""
    supports_comprehensions: bool = True
    """List, dict and set comprehensions, generator expressions."""
    supports_lambdas: bool = True
    """`lambda`."""
    supports_tuple_unpacking: bool = True
    """`a, b = 1, 2`."""
    supports_indexing_slicing: bool = True
    """`xs[0]`, `xs[:10]`."""
    supports_break_continue: bool = True
    """`break` and `continue`."""
    supports_string_methods: bool = True
    """`"a b".split()` and the like."""
    supports_class_inheritance: bool = True
    """`class A(B)`, hence own exceptions, enums, abstract classes."""
    supports_properties: bool = True
    """`@property`, `@classmethod`, `@staticmethod`."""
    supports_generators: bool = True
    """`yield`."""
    supports_del: bool = True
    """`del x`, `del d[k]`."""
    supports_async_with_for: bool = True
    """`async with` and `async for`."""
    supports_tasks: bool = True
    """`asyncio.create_task`, `TaskGroup`, `wait_for`."""
    supports_gather_exceptions: bool = True
    """`asyncio.gather(..., return_exceptions=True)`."""
    supports_except_star: bool = True
    """`except*`."""
    supports_star_import: bool = True
    """`from m import *`."""
    supports_threads: bool = True
    """`threading`, also for calling tools."""
    supports_introspection: bool = True
    """`globals()`, `vars()`, `dir()`."""
    modules: tuple[str, ...] | None = None
    """Importable standard modules; None means the whole standard library."""
    packages: tuple[str, ...] = ()
    """Importable third-party packages."""
    stateful: bool = True
    """`session()` keeps state over actions."""
    network: bool = False
    """The code can open network connections."""
    filesystem: bool = True
    """The code can write files, if only scratch ones."""
    displays: bool = False
    """What the code shows comes out: `display(value)`, figures, images; see `ExecutionResult.displays`."""
    additional_instructions: str = ""
    """What the flags do not say, for the model."""
