"""Which actions need no event loop, and that nobody can tell the difference."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

from hatchway import CodeMode, CodeRuntimeError
from hatchway.transports.stdio import GUEST

pytestmark = pytest.mark.anyio

PLAIN = {
    "await add(1, 2)": ["add"],
    "x = await add(1, 2)\nprint(await mul(x, 2))": ["add", "mul"],
    "await git.log(n=1)": ["git.log"],
    "import json, re\njson.dumps(await add(1, 2))": ["add"],
    "def f(x):\n    return x\n[f(await add(n, 1)) for n in range(3)]": ["add"],
}
LOOPING = (
    "await helper()",  # named, but no tool: `are_tools` finds out
    "await (await add(1, 2))",
    "await task",
    "add = other\nawait add(1, 2)",
    "from json import loads as add\nawait add(1, 2)",
    "for add in tools:\n    await add(1, 2)",
    "def add(x): ...\nawait add(1, 2)",
    "async def f(): ...\nawait add(1, 2)",
    "async for x in y: ...\nawait add(1, 2)",
    "[x async for x in y]\nawait add(1, 2)",
    "import asyncio\nawait add(1, 2)",
    "from asyncio import sleep\nawait add(1, 2)",
    "import pandas\nawait add(1, 2)",
    "from . import x\nawait add(1, 2)",
    "globals()['add'] = x\nawait add(1, 2)",
    "await asyncio.gather(add(1, 2))",
)


def test_an_action_that_awaits_nothing_but_names_is_known() -> None:
    script = f"""
import ast, json, runpy, sys
runpy.run_path({str(GUEST / "__main__.py")!r})["load"]()
from _hatchway_guest import action, awaiting
for code in json.load(sys.stdin):
    found = action.Action(code, "<action>", awaiting.calls_awaited).awaited
    print(json.dumps(None if found is None else sorted(found)))
"""
    codes = [*PLAIN, *LOOPING]
    told = subprocess.run(
        [sys.executable, "-I", "-c", script], input=json.dumps(codes), capture_output=True, text=True, check=True
    )
    found = dict(zip(codes, map(json.loads, told.stdout.splitlines()), strict=True))
    assert {code: found[code] for code in PLAIN} == PLAIN
    assert {code for code in LOOPING if found[code] is not None} == {"await helper()"}


async def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


async def fail() -> None:
    """Never works."""
    raise ValueError("no")


CASES = {
    "await add(1, 2)": "3",
    "x = await add(1, 2)\nawait add(x, x)": "6",
    "try:\n    await fail()\nexcept ToolError as e:\n    told = str(e)\ntold": "'ValueError: no'",
    "[await add(n, 1) for n in range(3)]": "[1, 2, 3]",
    "import threading\nout = []\nt = threading.Thread(target=lambda: out.append(1))\nt.start()\n"
    "total = await add(1, 1)\nt.join()\n[total, out]": "[2, [1]]",
    "async def twice(x):\n    return await add(x, x)\nawait twice(4)": "8",
    "import asyncio\nawait asyncio.gather(add(1, 1), add(2, 2))": "[2, 4]",
    "import asyncio\nawait asyncio.sleep(0)\nasyncio.current_task() is not None": "True",
    "add = (lambda add: lambda *a: add(*a))(add)\nawait add(2, 3)": "5",
}


@pytest.mark.parametrize("code", CASES)
async def test_code_runs_alike_with_a_loop_and_without(code: str) -> None:
    async with CodeMode("process", tools=[add, fail]) as mode:
        assert repr((await mode.run(code)).output) == CASES[code]
        async with mode.session() as session:
            assert repr((await session.run(code)).output) == CASES[code]
            assert (await session.run("import asyncio\nawait asyncio.sleep(0)\nawait add(1, 0)")).output == 1


async def test_an_error_shows_the_line_of_the_await() -> None:
    async with CodeMode("process", tools=[fail]) as mode:
        with pytest.raises(CodeRuntimeError) as raised:
            await mode.run(textwrap.dedent("x = 1\nawait fail()\n"))
    assert "line 2" in str(raised.value)
    assert "awaiting.py" not in str(raised.value)
    assert str(raised.value).endswith("ValueError: no")
