"""The sandbox itself: its probe, its names, and the type check."""

from __future__ import annotations

from typing import get_args

from hatchway.core.constraints import CodeConstraints
from hatchway.core.errors import CodeSyntaxError, CodeTypeError
from hatchway.core.results import Tier
from hatchway.core.sandbox import Availability, CodeSandbox
from hatchway.testing.conformance.checks import check
from hatchway.testing.conformance.drive import run
from hatchway.testing.conformance.expect import equal, fail, raises, shown

STUB = "def add(a: int, b: int) -> int: ...\n"


@check("probe() says usable, with the tier a launch gets, and says it again")
async def check_probe(sandbox: CodeSandbox) -> None:
    for _ in range(2):
        found = type(sandbox).probe()
        if not isinstance(found, Availability) or found.state != "usable":
            fail(f"this sandbox runs, but probe() gives {shown(found)}")
        if found.tier not in get_args(Tier):
            fail(f"probe() gives the tier {found.tier!r}")


@check("name, tier and constraints are set")
async def check_described(sandbox: CodeSandbox) -> None:
    if not sandbox.name or not sandbox.name.isascii() or sandbox.name != sandbox.name.lower():
        fail(f"the name is {sandbox.name!r}, not a lower-case word")
    if sandbox.tier not in get_args(Tier):
        fail(f"the tier is {sandbox.tier!r}, not one of {get_args(Tier)}")
    if not isinstance(sandbox.constraints, CodeConstraints):
        fail(f"constraints is {shown(sandbox.constraints)}")


@check("type_check() accepts code that is right")
async def check_type_check_accepts(sandbox: CodeSandbox) -> None:
    for code in ("x = add(1, 2)\nx + 1", "print('a')", "", "[add(n, 1) for n in range(3)]"):
        await sandbox.type_check(code, STUB)


@check("type_check() refuses wrong arguments with CodeTypeError, if it checks at all")
async def check_type_check_refuses(sandbox: CodeSandbox) -> None:
    wrong = ("add('one', 2)", "add(1)", "ad(1, 2)")
    refused: list[str] = []
    for code in wrong:
        try:
            await sandbox.type_check(code, STUB)
        except CodeTypeError as e:
            refused.append(code)
            if "line 1" not in str(e) and ":1:" not in str(e):
                fail(f"the error does not say the line: {shown(str(e))}")
    if refused and len(refused) < len(wrong):
        fail(f"of {wrong} only {refused} are refused")
    if refused:
        with raises(CodeSyntaxError, "code that does not parse"):
            await sandbox.type_check("x = = 1", STUB)


@check("type_check() runs nothing and keeps nothing")
async def check_type_check_runs_nothing(sandbox: CodeSandbox) -> None:
    await sandbox.type_check("leftover: int = 1\nprint('ran')", STUB)
    code = "try:\n    leftover\n    told = 'kept'\nexcept NameError:\n    told = 'gone'\ntold"
    result = await run(sandbox, code)
    equal("output and stdout afterwards", [result.output, result.stdout], ["gone", ""])
