"""The type check of Monty: before the code runs, without running it, each check on its own."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from hatchway.core.errors import CodeSyntaxError, CodeTypeError
from hatchway.sandboxes.monty import MontySandbox, pool
from hatchway.sandboxes.monty.typecheck import KEPT
from hatchway.testing.conformance.drive import run

pytestmark = pytest.mark.anyio

STUBS = """
from typing import Any

def find(name: str, limit: int = 10) -> list[dict[str, Any]]: ...
async def fetch(id: int) -> str: ...
class files:
    def size(path: str) -> int: ...
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[MontySandbox]:
    sandbox = MontySandbox()
    yield sandbox
    asyncio.run(sandbox.aclose())


async def refused(sandbox: MontySandbox, code: str) -> str:
    with pytest.raises(CodeTypeError) as wrong:
        await sandbox.type_check(code, STUBS)
    return str(wrong.value)


async def test_right_code_passes(sandbox: MontySandbox) -> None:
    for code in (
        "",
        "rows = find('a', limit=3)\nprint(len(rows))\nrows[0]['x']",
        "x = await fetch(1)\nx.upper()",
        "import asyncio\nawait asyncio.gather(fetch(1), fetch(2))",
        "async def both():\n    return await fetch(1) + await fetch(2)\nawait both()",
        "files.size('a') + 1",
        "while True:\n    pass",
        '"""text\nof two lines"""\nfind("""a\nb""")',
    ):
        await sandbox.type_check(code, STUBS)


async def test_wrong_code_is_refused_with_its_line_and_a_caret(sandbox: MontySandbox) -> None:
    assert await refused(sandbox, "x = 1\n\nfind(x)\n") == (
        "error[invalid-argument-type]: Argument to function `find` is incorrect\n"
        " --> action:3:6\n"
        "  |\n"
        "1 | x = 1\n"
        "2 |\n"
        "3 | find(x)\n"
        "  |      ^ Expected `str`, found `Literal[1]`\n"
        "info: Function defined here\n"
        " --> repl_type_stubs.pyi:4:5\n"
        "  |\n"
        "2 | from typing import Any\n"
        "3 |\n"
        "4 | def find(name: str, limit: int = 10) -> list[dict[str, Any]]: ...\n"
        "  |     ^^^^ --------- Parameter declared here\n"
        "5 | async def fetch(id: int) -> str: ...\n"
        "6 | class files:\n"
        "  |"
    )


async def test_kinds_of_wrong_code(sandbox: MontySandbox) -> None:
    for code, told in {
        "find()": "No argument provided for required parameter `name`",
        "find('a', most=1)": "Argument `most` does not match any known parameter",
        "fnd('a')": "Name `fnd` used when not defined",
        "fetch(1) + 'a'": "Unsupported `+` operation",
        "await find('a')": "is not awaitable",
        "files.size(1)": "Expected `str`",
        "files.move('a')": "has no attribute `move`",
        "import numpy": "Cannot resolve imported module `numpy`",
    }.items():
        assert told in await refused(sandbox, code), code


async def test_code_that_does_not_parse_is_a_syntax_error(sandbox: MontySandbox) -> None:
    for code in ("x = = 1", "find('a'", "return 1", "class A(Exception):\n    pass", "x = '\ud800'"):
        with pytest.raises(CodeSyntaxError):
            await sandbox.type_check(code, STUBS)


async def test_nothing_runs_and_nothing_stays(sandbox: MontySandbox) -> None:
    await sandbox.type_check("secret: int = 1\nprint('ran')\nwhile True:\n    pass", STUBS)
    assert "Name `secret` used when not defined" in await refused(sandbox, "secret + 1")
    result = await run(sandbox, "try:\n    told = secret\nexcept NameError:\n    told = 'gone'\ntold")
    assert (result.output, result.stdout) == ("gone", "")


async def test_each_set_of_stubs_is_on_its_own(sandbox: MontySandbox) -> None:
    await sandbox.type_check("only_here(1)", "def only_here(x: int) -> int: ...")
    with pytest.raises(CodeTypeError, match="`only_here` used when not defined"):
        await sandbox.type_check("only_here(1)", STUBS)


async def test_workers_are_kept_for_a_few_sets_of_stubs(sandbox: MontySandbox) -> None:
    await sandbox.type_check("1", STUBS)
    shared = pool._pool
    assert shared is not None
    others = len(shared._leases) - len(shared.checks._idle)
    for n in range(KEPT + 3):
        await sandbox.type_check("f(1)", f"def f(x: int) -> int: ...  # {n}")
    assert len(shared.checks._idle) == KEPT
    assert len(shared._leases) == KEPT + others, "the older ones were given back"


async def test_a_kept_worker_that_died_is_replaced(sandbox: MontySandbox) -> None:
    await sandbox.type_check("find('a')", STUBS)
    assert pool._pool is not None
    os.kill(pool._pool.checks._idle[STUBS]._pid or 0, signal.SIGKILL)
    assert "Expected `str`" in await refused(sandbox, "find(1)")
    await sandbox.type_check("find('a')", STUBS)


async def test_many_checks_at_once(sandbox: MontySandbox) -> None:
    codes = ["find('a')", "find(1)"] * 10
    checks = [sandbox.type_check(code, STUBS) for code in codes]
    outcomes = await asyncio.gather(*checks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None), CodeTypeError] * 10


async def test_a_cancelled_check_leaves_the_next_alone(sandbox: MontySandbox) -> None:
    for delay in (0, 0.0005, 0.002):
        checking = asyncio.ensure_future(sandbox.type_check("find('a')\n" * 2000, STUBS))
        await asyncio.sleep(delay)
        checking.cancel()
        await asyncio.wait({checking})
        await sandbox.type_check("find('a')", STUBS)
        assert "Expected `str`" in await refused(sandbox, "find(1)")
