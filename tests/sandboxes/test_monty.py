"""Monty beyond the conformance suite: its own ways to name, refuse, sleep, print and fail."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from hatchway.core.calls import FunctionCall, FunctionSignature, Waiting
from hatchway.core.errors import (
    CodeExecutionError,
    CodeLimitError,
    CodeRuntimeError,
    CodeSyntaxError,
    CodeTimeoutError,
    SandboxCrashed,
    ValueNotPortable,
)
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult
from hatchway.sandboxes.monty import MontySandbox
from hatchway.testing.conformance.drive import failure, next_call, next_calls, next_waiting, run, started

pytestmark = pytest.mark.anyio

HALF = Limits(wall_seconds=0.5)
SUBSET = "this sandbox runs a subset of Python: write it in another way"
FETCH = FunctionSignature(name="fetch", is_async=True)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[MontySandbox]:
    """One for all tests of the module, each of which has a loop of its own."""
    sandbox = MontySandbox(env={"REGION": "eu"})
    yield sandbox
    asyncio.run(sandbox.aclose())


async def double(n: int) -> int:
    """An async tool."""
    return n * 2


def add(a: int, b: int = 1) -> int:
    """A plain tool."""
    return a + b


async def output(sandbox: MontySandbox, code: str, **tools: Any) -> Any:
    return (await run(sandbox, code, tools)).output


async def error(sandbox: MontySandbox, code: str, **tools: Any) -> str:
    return str(await failure(sandbox, CodeExecutionError, code, tools))


async def test_tools_can_be_passed_around_as_values(sandbox: MontySandbox) -> None:
    assert await output(sandbox, "f = add\n[f(1), {'k': f}['k'](2, b=5)]", add=add) == [2, 7]
    assert await output(sandbox, "str(add)", add=add) == "<function 'add' external>"
    assert await output(sandbox, "g = fetch\nawait g(4)", fetch=double) == 8


async def test_a_tool_named_like_a_builtin_is_the_tool(sandbox: MontySandbox) -> None:
    assert await output(sandbox, "sum([1, 2])", sum=lambda xs: f"tool got {xs}") == "tool got [1, 2]"


async def test_namespaces_of_any_depth(sandbox: MontySandbox) -> None:
    tools = {"a.b.c": add, "a.d": add, "e.f": double}
    code = "f = a.b.c\n[a.b.c(1), a.d(2), await e.f(3), f(4)]"
    assert (await run(sandbox, code, tools)).output == [2, 3, 6, 5]
    missing = await failure(sandbox, CodeRuntimeError, "x = 1\na.b.cc(1)", tools)
    assert str(missing) == (
        "Traceback (most recent call last):\n"
        '  File "<action>", line 2, in <module>\n'
        "    a.b.cc(1)\n"
        "    ~~~~~~~~~\n"
        "AttributeError: a.b has no tool 'cc'; did you mean a.b.c?"
    )
    assert str(await failure(sandbox, CodeRuntimeError, "a.x", tools)).endswith(
        "AttributeError: 'Namespace' object has no attribute 'x'"
    )


async def test_the_wrong_style_is_told_at_the_call(sandbox: MontySandbox) -> None:
    tools = {"add": add, "fetch": double}
    awaited = await failure(sandbox, CodeRuntimeError, "x = 1\nawait add(x)", tools)
    assert str(awaited).endswith("TypeError: add is a plain function: call it as add(...), without await")
    assert "line 2" in str(awaited)
    for code in ("fetch(1) + 1", "fetch(1)", "fetch(1)\n2", "x = fetch(1)['a']", "f'{fetch(1)}'", "if fetch(1): pass"):
        text = str(await failure(sandbox, CodeRuntimeError, code, tools))
        assert text.endswith("TypeError: fetch is async: call it as await fetch(...)"), code


async def test_an_await_elsewhere_in_the_line_is_no_fault(sandbox: MontySandbox) -> None:
    code = "async def outer(n):\n    return add(n)\nx_await = 1\n[await outer(add(1)), add(x_await), await  fetch(2)]"
    assert await output(sandbox, code, add=add, fetch=double) == [3, 2, 4]


async def test_a_call_that_is_never_awaited_does_not_run(sandbox: MontySandbox) -> None:
    made: list[int] = []

    async def fetch(n: int) -> None:
        made.append(n)

    text = await error(sandbox, "a = 1\n\nlater = fetch(a)\n'done'", fetch=fetch)
    assert text == (
        "Traceback (most recent call last):\n"
        '  File "<action>", line 3\n'
        "    later = fetch(a)\n"
        "TypeError: fetch is async: call it as await fetch(...)"
    )
    assert made == []


async def test_code_in_syntax_monty_lacks_is_a_syntax_error_with_a_hint(sandbox: MontySandbox) -> None:
    for code, what in (
        ("print('ran')\nclass A(Exception):\n    pass", "class inheritance and metaclasses"),
        ("def f():\n    yield 1", "yield expressions"),
        ("x = 1\ndel x", "the 'del' statement"),
    ):
        refused = await failure(sandbox, CodeSyntaxError, code)
        line = f"NotImplementedError: The monty syntax parser does not yet support {what}"
        assert str(refused).endswith(f"{line}\n{SUBSET}")
        assert (refused.stdout, refused.hint) == ("", SUBSET)


async def test_an_error_of_syntax_at_run_time_is_a_runtime_error(sandbox: MontySandbox) -> None:
    for code in ("eval('1 +')", "exec('yield 1')", "add(1)\nraise SyntaxError('x')", "raise NotImplementedError('x')"):
        await failure(sandbox, CodeRuntimeError, code, {"add": add})


async def test_code_that_is_no_code(sandbox: MontySandbox) -> None:
    with pytest.raises(TypeError, match="code must be a str, not bytes"):
        await sandbox.execute(b"1")  # type: ignore[arg-type]
    for code in ("\0", "x = '\ud800'", "x = = 1", "(" * 5000):
        await failure(sandbox, CodeSyntaxError, code)
    assert await output(sandbox, "") is None
    assert await output(sandbox, f"len('{'a' * 5_000_000}')") == 5_000_000
    assert await output(sandbox, "x = 1\n" * 20_000 + "x") == 1
    small = Limits(memory_bytes=20_000_000)
    refused = await failure(sandbox, CodeLimitError, "x = 1\n" * 100_000, limits=small)
    assert refused.limit == "memory_bytes", "the parser's memory counts"


async def test_statements_that_monty_drops_have_no_value(sandbox: MontySandbox) -> None:
    for code in (
        "7\npass",
        "7; pass",
        "7\nglobal x",
        "7\nx: int",
        "7\npass  # done",
        "lambda: 1\npass",
        "7\npass\n# end",
    ):
        assert await output(sandbox, code) is None, code
    for code in ("7\n# pass", "'a: b'", "{'a': 7}['a']", "x = [7]\nx[0]  # : pass", "7\n\n# note: x"):
        assert await output(sandbox, code) in (7, "a: b"), code


async def test_what_monty_sends_as_text_is_refused(sandbox: MontySandbox) -> None:
    codes = {
        "{'a': 1}.keys()": "output is the view or range dict_keys(['a'])",
        "[range(3)]": "output[0] is the view or range range(0, 3)",
        "import math\n{'m': math}": "output['m'] is a module (<module 'math'>)",
        "iter([1])": "output is a list_iterator (<list_iterator object>)",
        "import re\nre.match('a', 'a')": "output is a re.Match (<re.Match object; span=(0, 1), match='a'>)",
        "class A:\n    def f(self): pass\nA().f": "output is a bound (<bound method>)",
    }
    for code, told in codes.items():
        assert await error(sandbox, code) == (
            f"TypeError: {told}, which cannot cross the wall: use plain data (str(), int(), list(), dict() make it)"
        )


async def test_text_that_looks_like_an_object_but_is_none_crosses(sandbox: MontySandbox) -> None:
    for text in ("<div>module 'x'</div>", "[...]", "<class 'int'>", "a range(0, 3)", "<function>", "f()", ">", ")"):
        assert await output(sandbox, f"{text!r}") == text
        assert await output(sandbox, f"[{text!r}]" if text != "[...]" else "['x']") in ([text], ["x"])


async def test_other_values_that_cannot_cross(sandbox: MontySandbox) -> None:
    codes = {
        "1j": "of the type complex",
        "ValueError('x')": "the exception ValueError",
        "int": "the class int",
        "print": "the builtin print",
        "...": "of the type ellipsis",
        "import pathlib\npathlib.Path('/x')": "of the type PurePosixPath",
        "class A: pass\nA()": "an object of the class A",
    }
    for code, what in codes.items():
        assert (await error(sandbox, code)).startswith(f"TypeError: output is {what}, which cannot cross the wall"), (
            code
        )


async def test_dataclasses_and_named_tuples_of_the_code_cross_as_plain_data(sandbox: MontySandbox) -> None:
    code = """
        from dataclasses import dataclass
        from collections import namedtuple
        @dataclass
        class Point:
            x: int
            tags: list
        Pair = namedtuple("Pair", "a b")
        [Point(1, ["t"]), Pair(1, 2), add(Point(3, []))]
    """
    seen: list[Any] = []
    assert await output(sandbox, code, add=seen.append) == [{"x": 1, "tags": ["t"]}, (1, 2), None]
    assert seen == [{"x": 3, "tags": []}]
    many = code.rpartition("[Point")[0] + "[Point(n, [n]) for n in range(50)]"
    assert await output(sandbox, many) == [{"x": n, "tags": [n]} for n in range(50)]


async def test_a_value_that_holds_itself_many_times_is_counted_not_walked(sandbox: MontySandbox) -> None:
    code = "x = [1]\nfor _ in range({}):\n    x = [x, x]\n"
    begun = time.monotonic()
    for end in ("x", "add(x)"):
        refused = await failure(sandbox, CodeLimitError, code.format(64) + end, {"add": add})
        assert refused.limit == "value_bytes"
    assert time.monotonic() - begun < 5
    shared = await output(sandbox, code.format(3) + "x")
    assert shared == [[[[1]] * 2] * 2] * 2


async def test_an_argument_that_cannot_cross_is_named_by_its_place(sandbox: MontySandbox) -> None:
    for call, which in (
        ("add(1, [print])", "argument 2 of add [0]"),
        ("add(print, 1)", "argument 1 of add"),
        ("add(1, b={'k': int})", "argument 'b' of add ['k']"),
    ):
        assert f"TypeError: {which} is the " in await error(sandbox, call, add=add)


async def test_inputs_and_results_are_named_by_their_path(sandbox: MontySandbox) -> None:
    with pytest.raises(ValueNotPortable, match=r"^inputs\['rows'\]\[1\] is object, which cannot cross the wall"):
        await sandbox.execute("rows", inputs={"rows": [1, object()]})
    with pytest.raises(ValueNotPortable, match=r"^inputs\['t'\]\['k'\] holds a lone surrogate"):
        await sandbox.execute("t", inputs={"t": {"k": "a\ud800"}})
    async with started(sandbox, "add(1)", ["add"]) as execution:
        await next_call(execution)
        with pytest.raises(ValueNotPortable, match=r"^result of add\['x'\] is function"):
            await execution.provide_result({"x": add})
        with pytest.raises(ValueNotPortable, match=r"^result of add\[0\] is a dict inside a set or as a key"):
            await execution.provide_result({FrozenPoint()})


class FrozenPoint:
    """Hashable here, a dict inside."""

    __dataclass_fields__ = ("x",)
    x = 1


async def test_timeouts_say_how_long_and_what_to_do(sandbox: MontySandbox) -> None:
    endless = ("while True: pass", "import time\ntime.sleep(9)", "import asyncio\nawait asyncio.sleep(9)")
    for code in (*endless, "3 ** 10**8"):
        late = await failure(sandbox, CodeTimeoutError, f"print('x')\n{code}", limits=HALF)
        assert str(late) == "the code ran longer than 0.5 s\nraise Limits.wall_seconds, or let the code do less"
        assert late.stdout == "x\n" or code not in endless, "a worker killed inside one operation keeps its buffer"


@pytest.mark.parametrize(
    "code",
    [
        "import os\nwhile True:\n    os.getenv('X')",
        "while True:\n    try:\n        unknown()\n    except NameError:\n        pass",
        "while True:\n    try:\n        unknown\n    except NameError:\n        pass",
        "import time\nwhile True:\n    time.sleep(0)",
        "import time\nwhile True:\n    time.sleep(0.1)\n    add(1)",
        "while True:\n    try:\n        open('/x')\n    except OSError:\n        pass",
    ],
)
async def test_stops_the_host_answers_itself_do_not_buy_time(sandbox: MontySandbox, code: str) -> None:
    begun = time.monotonic()
    with pytest.raises(CodeTimeoutError):
        await run(sandbox, code, {"add": add}, limits=HALF)
    assert time.monotonic() - begun < 3


async def test_limits_say_what_was_taken(sandbox: MontySandbox) -> None:
    much = await failure(sandbox, CodeLimitError, "x = 'a' * 10**9", limits=Limits(memory_bytes=10_000_000))
    assert much.message == "the code took more than 10000000 bytes of memory"
    assert much.hint == "raise Limits.memory_bytes, or let the code take less"
    many = await failure(sandbox, CodeLimitError, "while True: add(1)", {"add": add}, limits=Limits(calls=3))
    assert (many.message, many.limit) == ("the code made more than 3 tool calls", "calls")


async def test_sleep_and_calls_go_on_side_by_side(sandbox: MontySandbox) -> None:
    code = "import asyncio\nawait asyncio.gather(asyncio.sleep(0.3, 'slept'), fetch(1), asyncio.sleep(0.2))"
    async with started(sandbox, code, [FETCH]) as execution:
        call = await next_call(execution)
        assert execution.poll() is None, "the code wakes by itself"
        await execution.provide_result("answered", call_id=call.call_id)
        result = await execution.next()
    assert isinstance(result, ExecutionResult)
    assert result.output == ["slept", "answered", None]
    assert 0.25 < result.usage.wall_seconds < 2


async def test_a_sleep_nobody_awaits_yet_does_not_hold_up_a_call(sandbox: MontySandbox) -> None:
    async with started(sandbox, "import asyncio\nnap = asyncio.sleep(60)\nadd(1)\n'no nap'", ["add"]) as execution:
        call = await next_call(execution)
        assert await execution.next() == Waiting((call,))
        await execution.provide_result(2)
        result = await execution.next()
    assert isinstance(result, ExecutionResult)
    assert result.output == "no nap"


async def test_the_environment_and_randomness_are_the_sandboxs_own(sandbox: MontySandbox) -> None:
    code = "import os\n[os.getenv('REGION'), os.getenv('HOME'), os.getenv('HOME', 'none'), dict(os.environ)]"
    assert await output(sandbox, code) == ["eu", None, "none", {"REGION": "eu"}]
    assert await output(sandbox, "import os\nlen(os.urandom(20))") == 20
    assert "os.urandom gives 0 to 1048576 bytes at a time" in await error(sandbox, "import os\nos.urandom(2**20 + 1)")


async def test_of_a_flood_the_beginning_and_the_end_are_streamed(sandbox: MontySandbox) -> None:
    heard: list[str] = []
    code = "for i in range(200_000):\n    print('x' * 99)"
    result = await run(
        sandbox, code, limits=Limits(output_bytes=50_000), on_output=lambda stream, text: heard.append(text)
    )
    streamed = "".join(heard)
    assert streamed == f"{streamed[:50_000]}\n… 19925000 characters cut …\n{streamed[-25_000:]}"
    assert streamed.endswith("x\n")
    assert len(result.stdout) < 50_100
    assert "bytes cut" in result.stdout


async def test_a_worker_that_dies_is_the_codes_end_and_not_the_sandboxs(sandbox: MontySandbox) -> None:
    async with started(sandbox, "print('before')\nwhile True: pass") as execution:
        while "before" not in execution._action.printed.stdout:  # type: ignore[attr-defined]
            await asyncio.sleep(0.01)
        os.kill(execution._lease._pid, signal.SIGKILL)  # type: ignore[attr-defined]
        with pytest.raises(CodeRuntimeError, match="the interpreter died: monty worker crashed") as died:
            await execution.next()
    assert died.value.stdout == "before\n"
    assert await output(sandbox, "40 + 2") == 42


async def test_a_defect_of_the_interpreter_is_told_as_one(sandbox: MontySandbox) -> None:
    """Such code dies each time: to run it again would not help."""
    died = await failure(sandbox, CodeRuntimeError, "class A: pass\n[A, A()]")
    assert died.message.startswith("the interpreter died: monty worker crashed: child panicked")
    assert died.hint == (
        "a defect of the interpreter: write it in another way, the same code dies again; "
        "what it printed last may be missing"
    )
    assert await output(sandbox, "40 + 2") == 42


async def test_answers_after_the_end(sandbox: MontySandbox) -> None:
    code = "import asyncio\ntry:\n    await asyncio.gather(fetch(1), fetch(2))\nexcept ValueError:\n    pass\n'over'"
    async with started(sandbox, code, [FETCH]) as execution:
        one, two = await next_calls(execution, 2)
        await execution.provide_error(ValueError("x"), call_id=one.call_id)
        while not execution.is_over:  # type: ignore[attr-defined]
            await asyncio.sleep(0.001)
        await execution.provide_result(2, call_id=two.call_id)  # nobody was told of the end yet
        assert isinstance(await execution.next(), ExecutionResult)
        with pytest.raises(ValueError, match="no pending call"):
            await execution.provide_result(2, call_id=two.call_id)


async def test_next_takes_one_asker(sandbox: MontySandbox) -> None:
    async with started(sandbox, "while True: pass") as execution:
        asking = asyncio.ensure_future(execution.next())
        await asyncio.sleep(0.01)
        with pytest.raises(RuntimeError, match=r"next\(\) is already being awaited"):
            await execution.next()
        await execution.cancel()
        with pytest.raises(CodeRuntimeError, match="the execution was cancelled"):
            await asking


async def test_two_calls_of_one_number_end_the_execution(sandbox: MontySandbox) -> None:
    """No honest worker numbers two calls alike."""
    from hatchway.sandboxes.monty.ledger import Ledger

    ledger = Ledger(Limits())
    call = FunctionCall(call_id="7", function_name="f")
    assert ledger.enter(call) is None
    ledger.hand_out(call)
    assert str(ledger.enter(call)) == "the code broke the sandbox protocol: two calls are numbered 7"


async def test_a_session_tells_lines_of_an_earlier_action_apart(sandbox: MontySandbox) -> None:
    async with sandbox.session() as session:
        await run(session, "x = 1\ndef divide(a, b):\n    return a / b")
        failed = await failure(session, CodeRuntimeError, "divide(x, 0)")
    assert str(failed) == (
        "Traceback (most recent call last):\n"
        '  File "<action>", line 1, in <module>\n'
        "    divide(x, 0)\n"
        "    ~~~~~~~~~~~~\n"
        '  File "<earlier action>", line 3, in divide\n'
        "    return a / b\n"
        "           ~~~~~\n"
        "ZeroDivisionError: division by zero"
    )


async def test_a_session_that_is_gone_says_so(sandbox: MontySandbox) -> None:
    async with sandbox.session() as session:
        await failure(session, CodeTimeoutError, "while True: pass", limits=HALF)
        with pytest.raises(SandboxCrashed, match="the session is gone: its interpreter died or was killed") as gone:
            await session.execute("1")
        assert gone.value.hint == "open a new session; what this one had (names, imports, files) is lost"
    async with sandbox.session(limits=Limits(memory_bytes=20_000_000)) as session:
        await failure(session, CodeLimitError, "x = 'a' * 10**9")
        with pytest.raises(SandboxCrashed):
            await session.execute("1")
    async with sandbox.session() as session:
        async with started(session, "add(1)", ["add"]) as execution:
            await next_waiting(await _with_call(execution))
            await execution.cancel()
        with pytest.raises(SandboxCrashed):
            await session.execute("1")


async def _with_call(execution: Any) -> Any:
    await next_call(execution)
    return execution


@pytest.mark.slow
@pytest.mark.parametrize("style", ["", "await "])
async def test_ten_thousand_calls_in_one_run(sandbox: MontySandbox, style: str) -> None:
    tool = FunctionSignature(name="f", is_async=bool(style))
    code = f"total = 0\nfor i in range(10_000):\n    total += {style}f(i)\ntotal"
    sizes: list[int] = []
    async with started(sandbox, code, [tool], limits=Limits(wall_seconds=60)) as execution:
        while isinstance(call := await execution.next(), FunctionCall):
            await execution.provide_result(call.args[0], call_id=call.call_id)
            if call.args[0] % 1000 == 999:
                sizes.append(_resident_kib())
    assert isinstance(call, ExecutionResult)
    assert (call.output, call.usage.calls) == (sum(range(10_000)), 10_000)
    assert sizes[-1] - sizes[1] < 4096, f"memory grows: {sizes} KiB"


def _resident_kib() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
