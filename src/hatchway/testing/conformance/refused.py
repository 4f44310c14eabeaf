"""What cannot cross: a clear error that names the offender, and no call is made with a wrong value."""

from __future__ import annotations

from typing import Any

from hatchway.core.errors import CodeExecutionError, CodeRuntimeError, ValueNotPortable
from hatchway.core.sandbox import CodeSandbox
from hatchway.testing.conformance.checks import FULL_LIBRARY, check
from hatchway.testing.conformance.drive import failure, next_call, next_result, run, started, still_works
from hatchway.testing.conformance.expect import contains, equal, fail, raises, shown
from hatchway.testing.tools import echo

CYCLE = "loop = [1]\nloop.append(loop)\n"
DEEP = "deep = []\nfor _ in range(10_000):\n    deep = [deep]\n"
OBJECT = "class Box:\n    pass\nbox = Box()\n"


async def _refused_as_output(sandbox: CodeSandbox, code: str, *parts: str) -> None:
    error = await failure(sandbox, CodeExecutionError, code)
    contains("the error", str(error), *parts)
    await still_works(sandbox)


async def _refused_as_argument(sandbox: CodeSandbox, code: str, *parts: str) -> None:
    handed_out: list[Any] = []
    error = await failure(sandbox, CodeRuntimeError, code, {"send": handed_out.append})
    contains("the error", str(error), *parts)
    equal("calls that were handed out all the same", handed_out, [])


@check("an output that holds a function is refused, naming where")
async def check_function_output(sandbox: CodeSandbox) -> None:
    await _refused_as_output(sandbox, "{'rows': [1, lambda: 2]}", "['rows'][1]", "function")


@check("an output that is an object of an own class is refused, naming the class")
async def check_object_output(sandbox: CodeSandbox) -> None:
    await _refused_as_output(sandbox, f"{OBJECT}[1, box]", "[1]", "Box")


@check("an output that is a class, a module or a builtin is refused")
async def check_other_outputs(sandbox: CodeSandbox) -> None:
    for code in ("print", "int", "import math\nmath"):
        await failure(sandbox, CodeExecutionError, code)


@check("an output that contains itself is refused")
async def check_cycle_output(sandbox: CodeSandbox) -> None:
    await _refused_as_output(sandbox, f"{CYCLE}loop")


@check("an output nested ten thousand levels deep is refused")
async def check_deep_output(sandbox: CodeSandbox) -> None:
    await _refused_as_output(sandbox, f"{DEEP}deep")


@check("an argument that holds a function is refused at the call, naming where")
async def check_function_argument(sandbox: CodeSandbox) -> None:
    await _refused_as_argument(sandbox, "send({'rows': [1, lambda: 2]})", "['rows'][1]", "function")


@check("an argument that is an object of an own class is refused at the call, naming the class")
async def check_object_argument(sandbox: CodeSandbox) -> None:
    await _refused_as_argument(sandbox, f"{OBJECT}send([1, box])", "[1]", "Box")


@check("an argument that contains itself is refused at the call")
async def check_cycle_argument(sandbox: CodeSandbox) -> None:
    await _refused_as_argument(sandbox, f"{CYCLE}send(loop)")


@check("an argument nested ten thousand levels deep is refused at the call")
async def check_deep_argument(sandbox: CodeSandbox) -> None:
    await _refused_as_argument(sandbox, f"{DEEP}send(deep)")


@check("the code can catch the refusal of an argument and call again with a better one")
async def check_argument_refusal_caught(sandbox: CodeSandbox) -> None:
    code = f"""{OBJECT}
try:
    send(box)
    told = "crossed"
except Exception as e:
    told = str(e)
[told, send("text")]
"""
    told, second = (await run(sandbox, code, {"send": echo})).output
    contains("the caught error", told, "Box")
    equal("the second call", second, "text")


@check("results and inputs that contain themselves or are ten thousand levels deep are refused by the host's side")
async def check_host_cycle_and_depth(sandbox: CodeSandbox) -> None:
    cycle: list[Any] = [1]
    cycle.append(cycle)
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    async with started(sandbox, "fetch()", ["fetch"]) as execution:
        await next_call(execution)
        for bad in (cycle, deep):
            with raises(ValueNotPortable, "a result that is too deep"):
                await execution.provide_result(bad)
            with raises(ValueNotPortable, "an input that is too deep"):
                await sandbox.execute("bad", inputs={"bad": bad})
        await execution.provide_result("shallow")
        equal("the output", (await next_result(execution)).output, "shallow")


@check("subclasses of builtin types arrive as the builtin or are refused", needs=("supports_class_inheritance",))
async def check_subclasses(sandbox: CodeSandbox) -> None:
    for base, value in (("int", "7"), ("str", "'text'"), ("list", "[1]"), ("dict", "{'a': 1}"), ("float", "1.5")):
        code = f"class Own({base}):\n    pass\nOwn({value})"
        try:
            result = await run(sandbox, code)
        except CodeExecutionError:
            continue
        if type(result.output).__name__ != base:
            fail(f"a subclass of {base} arrived as {shown(result.output)}")


@check("values that lie about themselves cannot make the host see more than plain data", needs=(FULL_LIBRARY,))
async def check_lying_values(sandbox: CodeSandbox) -> None:
    liars = {
        "class L(dict):\n    def items(self):\n        raise ValueError('no')\nL(a=1)": {"a": 1},
        "class L(list):\n    def __iter__(self):\n        while True:\n            yield self\nL([1])": [1],
        "class L(int):\n    def __repr__(self):\n        return '[]'\nL(7)": 7,
        "class L(str):\n    def __str__(self):\n        return 'other'\nL('text')": "text",
        "class L:\n    __class__ = int\n    def __index__(self):\n        return 7\nL()": None,
    }
    for code, honest in liars.items():
        try:
            output = (await run(sandbox, code)).output
        except CodeExecutionError:
            continue
        equal(f"the output of {code!r}", output, honest)
    await still_works(sandbox)
