"""What Monty claims to run, tried: each flag and each module in both directions. Monty moves fast."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import fields

import pytest

from hatchway.core.constraints import CodeConstraints
from hatchway.core.errors import CodeExecutionError
from hatchway.sandboxes.monty import MontySandbox
from hatchway.testing.conformance.drive import run

TRUE = {
    "supports_imports": "import math\nmath.floor(1.5) == 1",
    "supports_while_loops": "n = 0\nwhile n < 3:\n    n += 1\nelse:\n    n += 1\nn == 4",
    "supports_comprehensions": "[[n for n in [1]], {n for n in [1]}, {n: 1 for n in [1]}, list(n for n in [1])] != []",
    "supports_lambdas": "(lambda a, *b, c=1: a + c)(1) == 2",
    "supports_tuple_unpacking": "a, (b, *c) = 1, (2, 3, 4)\n[a, b, c] == [1, 2, [3, 4]]",
    "supports_indexing_slicing": "x = [1, 2, 3]\nx[0:2] = [9]\n[x[0], x[-1], x[::-1]] == [9, 3, [3, 9]]",
    "supports_break_continue": "for n in range(9):\n    if n < 3:\n        continue\n    break\nn == 3",
    "supports_string_methods": "' A b '.strip().lower().split() == ['a', 'b']",
    "stateful": "True",
}
"""Code that must give True where the flag is set."""
FALSE = {
    "supports_class_inheritance": ["class A(Exception):\n    pass", "class A:\n    pass\nclass B(A):\n    pass"],
    "supports_properties": [
        "class A:\n    @property\n    def x(self):\n        return 1\nA().x",
        "class A:\n    @classmethod\n    def x(cls):\n        return 1\nA.x()",
        "class A:\n    @staticmethod\n    def x():\n        return 1\nA.x()",
    ],
    "supports_generators": ["def f():\n    yield 1\nlist(f())", "def f():\n    yield from [1]\nlist(f())"],
    "supports_del": ["x = 1\ndel x", "d = {1: 2}\ndel d[1]", "class A:\n    pass\na = A()\na.x = 1\ndel a.x"],
    "supports_async_with_for": [
        "class A:\n    async def __aenter__(self):\n        pass\n    async def __aexit__(self, *e):\n        pass\n"
        "async with A():\n    pass",
        "async def f():\n    async for x in y:\n        pass",
    ],
    "supports_tasks": [
        "import asyncio\nasync def f():\n    pass\nawait asyncio.create_task(f())",
        "import asyncio\nasync def f():\n    pass\nawait asyncio.wait_for(f(), 1)",
        "import asyncio\nasyncio.TaskGroup()",
    ],
    "supports_gather_exceptions": ["import asyncio\nawait asyncio.gather(return_exceptions=True)"],
    "supports_except_star": ["try:\n    pass\nexcept* ValueError:\n    pass"],
    "supports_star_import": ["from math import *\nfloor(1.5)"],
    "supports_threads": ["import threading"],
    "supports_introspection": ["globals()", "vars()", "dir()"],
    "filesystem": ["open('x', 'w')", "import pathlib\npathlib.Path('x').write_text('x')"],
    "network": ["import socket", "import urllib.request", "import http.client"],
}
"""Code that must fail where the flag is not set, each piece of it."""
TOLD_OTHERWISE = {"modules", "packages", "displays", "additional_instructions"}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[MontySandbox]:
    sandbox = MontySandbox()
    yield sandbox
    asyncio.run(sandbox.aclose())


def test_every_flag_is_tried() -> None:
    assert {f.name for f in fields(CodeConstraints)} == {*TRUE, *FALSE, *TOLD_OTHERWISE}


@pytest.mark.parametrize("flag", TRUE)
def test_what_is_claimed_works(sandbox: MontySandbox, flag: str) -> None:
    assert getattr(sandbox.constraints, flag) is True
    assert asyncio.run(run(sandbox, TRUE[flag])).output is True


@pytest.mark.parametrize(("flag", "code"), [(flag, code) for flag, codes in FALSE.items() for code in codes])
def test_what_is_denied_fails(sandbox: MontySandbox, flag: str, code: str) -> None:
    assert getattr(sandbox.constraints, flag) is False
    with pytest.raises(CodeExecutionError):
        asyncio.run(run(sandbox, code))


def test_modules_are_those_and_no_others(sandbox: MontySandbox) -> None:
    names = sorted(name for name in sys.stdlib_module_names if not name.startswith("_"))
    tries = [f"try:\n    import {name}\n    found.append({name!r})\nexcept ImportError:\n    pass\n" for name in names]
    found = asyncio.run(run(sandbox, "found = []\n" + "".join(tries) + "found")).output
    assert tuple(found) == sandbox.constraints.modules


def test_third_party_packages_are_not_there(sandbox: MontySandbox) -> None:
    assert sandbox.constraints.packages == ()
    assert not sandbox.constraints.displays
    for name in ("numpy", "pandas", "requests", "pydantic"):
        with pytest.raises(CodeExecutionError, match=f"No module named '{name}'"):
            asyncio.run(run(sandbox, f"import {name}"))


def test_a_session_keeps_state(sandbox: MontySandbox) -> None:
    async def kept() -> object:
        async with sandbox.session() as session:
            await run(session, "x = 41")
            return (await run(session, "x + 1")).output

    assert asyncio.run(kept()) == 42


@pytest.mark.parametrize("code", ["list(map(tool, [1]))", "sorted([2, 1], key=tool)"])
def test_the_advice_about_tools_as_callbacks_is_still_needed(sandbox: MontySandbox, code: str) -> None:
    assert "Tools cannot be passed to map()" in sandbox.constraints.additional_instructions
    with pytest.raises(CodeExecutionError, match="cannot suspend in this synchronous context") as refused:
        asyncio.run(run(sandbox, code, {"tool": abs}))
    assert refused.value.hint == "call the tool in a loop or a comprehension instead"
