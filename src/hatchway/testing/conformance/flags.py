"""Constraints: each flag is true, in both directions. What is claimed works; what is denied really fails."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from hatchway.core.errors import CodeExecutionError
from hatchway.core.sandbox import CodeSandbox
from hatchway.testing.conformance.checks import CheckFunction, check
from hatchway.testing.conformance.drive import run
from hatchway.testing.conformance.expect import fail, same

Snippets = Mapping[str, Any]
"""Code and the output it has where it is supported."""

ASYNC_CLASS = """
class Door:
    async def __aenter__(self):
        return "in"
    async def __aexit__(self, *error):
        return None
    def __aiter__(self):
        self.left = 2
        return self
    async def __anext__(self):
        if self.left == 0:
            raise StopAsyncIteration
        self.left -= 1
        return self.left
"""

ASYNC_ONE = "import asyncio\nasync def one(n=1):\n    return 1 // n\n"

SNIPPETS: Mapping[str, Snippets] = {
    "supports_imports": {"import math\nmath.floor(2.5)": 2},
    "supports_while_loops": {"n = 0\nwhile n < 3:\n    n += 1\nn": 3},
    "supports_comprehensions": {
        "[x * 2 for x in range(3)]": [0, 2, 4],
        "{x: 1 for x in 'ab'}": {"a": 1, "b": 1},
        "{x for x in [1, 1]}": {1},
        "sum(x for x in range(4))": 6,
    },
    "supports_lambdas": {"(lambda x: x + 1)(1)": 2},
    "supports_tuple_unpacking": {"a, (b, *c) = 1, (2, 3, 4)\n[a, b, c]": [1, 2, [3, 4]]},
    "supports_indexing_slicing": {"xs = [1, 2, 3]\n[xs[0], xs[-1], xs[1:], xs[::2]]": [1, 3, [2, 3], [1, 3]]},
    "supports_break_continue": {
        "for i in range(9):\n    if i == 3:\n        break\ni": 3,
        "got = []\nfor i in range(3):\n    if i == 1:\n        continue\n    got.append(i)\ngot": [0, 2],
    },
    "supports_string_methods": {"['a b'.split(), '-'.join('xy'), 'q'.upper()]": [["a", "b"], "x-y", "Q"]},
    "supports_class_inheritance": {
        "class A:\n    def f(self):\n        return 1\nclass B(A):\n    pass\nB().f()": 1,
        "class E(Exception):\n    pass\ntry:\n    raise E('x')\nexcept E as e:\n    told = str(e)\ntold": "x",
    },
    "supports_properties": {
        "class A:\n    @property\n    def p(self):\n        return 1\nA().p": 1,
        "class A:\n    @classmethod\n    def c(cls):\n        return cls.__name__\nA.c()": "A",
        "class A:\n    @staticmethod\n    def s():\n        return 3\nA.s()": 3,
    },
    "supports_generators": {"def g():\n    yield 1\n    yield from [2, 3]\nlist(g())": [1, 2, 3]},
    "supports_del": {
        "d = {1: 2, 3: 4}\ndel d[1]\nd": {3: 4},
        "x = 1\ndel x\ntry:\n    x\nexcept NameError:\n    told = 'gone'\ntold": "gone",
    },
    "supports_async_with_for": {
        f"{ASYNC_CLASS}async with Door() as where:\n    pass\nwhere": "in",
        f"{ASYNC_CLASS}got = []\nasync for n in Door():\n    got.append(n)\ngot": [1, 0],
    },
    "supports_tasks": {
        f"{ASYNC_ONE}await asyncio.create_task(one())": 1,
        f"{ASYNC_ONE}await asyncio.wait_for(one(), 5)": 1,
        f"{ASYNC_ONE}async with asyncio.TaskGroup() as g:\n    t = g.create_task(one())\nt.result()": 1,
    },
    "supports_gather_exceptions": {
        f"{ASYNC_ONE}got = await asyncio.gather(one(), one(0), return_exceptions=True)\n"
        "[got[0], type(got[1]).__name__]": [1, "ZeroDivisionError"],
    },
    "supports_except_star": {
        "try:\n    raise ExceptionGroup('g', [ValueError('a')])\nexcept* ValueError as e:\n"
        "    told = len(e.exceptions)\ntold": 1,
    },
    "supports_star_import": {"from math import *\nfloor(2.5)": 2},
    "supports_threads": {
        "import threading\ngot = []\nt = threading.Thread(target=got.append, args=(1,))\nt.start()\nt.join()\ngot": [1]
    },
    "supports_introspection": {
        "x = 5\nglobals()['x']": 5,
        "class A:\n    pass\na = A()\na.y = 1\nvars(a)": {"y": 1},
        "'upper' in dir('text')": True,
    },
    "filesystem": {
        "import pathlib\np = pathlib.Path('conformance.txt')\np.write_text('kept')\n"
        "told = p.read_text()\np.unlink()\ntold": "kept",
    },
}

SAMPLE_MODULES = (
    "io", "string", "textwrap", "statistics", "heapq", "contextlib", "enum", "uuid", "urllib.parse", "types", "struct",
    "fractions", "tempfile", "pickle", "ast", "inspect", "threading", "subprocess", "socket", "logging", "zlib",
)  # fmt: skip
"""Modules to try where the claim is "the whole standard library", and to try not to have where a list is given."""


async def _works(sandbox: CodeSandbox, code: str, expected: Any) -> str:
    """Empty when the code gives what is expected; else what came instead."""
    try:
        output = (await run(sandbox, code)).output
    except CodeExecutionError as e:
        return str(e).strip().rpartition("\n")[2] or type(e).__name__
    return "" if same(output, expected) else f"the output {output!r}"


def _check_of(flag: str, snippets: Snippets) -> CheckFunction:
    async def is_true(sandbox: CodeSandbox) -> None:
        claimed = getattr(sandbox.constraints, flag)
        faults = {code: await _works(sandbox, code, expected) for code, expected in snippets.items()}
        if claimed and any(faults.values()):
            fail(f"{flag} is claimed, but: {[f'{code!r} gives {fault}' for code, fault in faults.items() if fault]}")
        if not claimed and not any(faults.values()):
            fail(f"{flag} is denied, but works: claim it")

    return is_true


for _flag, _snippets in SNIPPETS.items():
    check(f"the flag {_flag} says what is so", name=_flag)(_check_of(_flag, _snippets))


async def _importable(sandbox: CodeSandbox, names: tuple[str, ...]) -> set[str]:
    got = await asyncio.gather(*[_works(sandbox, f"import {name}\n1", 1) for name in names])
    return {name for name, fault in zip(names, got, strict=True) if not fault}


@check("every module that is claimed can be imported, and a list of modules is complete", seconds=60)
async def check_modules(sandbox: CodeSandbox) -> None:
    claimed = sandbox.constraints.modules
    missing = set(claimed or SAMPLE_MODULES) - await _importable(sandbox, tuple(claimed or SAMPLE_MODULES))
    if missing:
        fail(f"modules that are claimed and cannot be imported: {sorted(missing)}")
    if claimed is not None:
        others = tuple(name for name in SAMPLE_MODULES if name not in claimed)
        if extra := await _importable(sandbox, others):
            fail(f"modules that can be imported and are not claimed: {sorted(extra)}")


@check("every package that is claimed can be imported", seconds=60)
async def check_packages(sandbox: CodeSandbox) -> None:
    claimed = sandbox.constraints.packages
    if missing := set(claimed) - await _importable(sandbox, claimed):
        fail(f"packages that are claimed and cannot be imported: {sorted(missing)}")


@check("the flag network says what is so: denied, the code cannot reach the host's loopback")
async def check_network(sandbox: CodeSandbox) -> None:
    reached = asyncio.Event()

    def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.set()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    code = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 2).close()\n1"
    try:
        fault = await _works(sandbox, code, 1)
        await asyncio.sleep(0.05)
    finally:
        server.close()
        await server.wait_closed()
    if reached.is_set() and not sandbox.constraints.network:
        fail("network is denied, but the code reached a port on the host's loopback")
    if sandbox.constraints.network and sandbox.tier == "process" and not reached.is_set():
        fail(f"network is claimed, but the code could not connect: {fault}")
