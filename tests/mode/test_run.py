"""One action driven through the gate: calls bound, validated, answered; failures of three kinds kept apart."""

import asyncio
import re
import threading
import time
from typing import Any

import pytest

from hatchway import (
    CallContext,
    CodeLimitError,
    CodeMode,
    CodeRuntimeError,
    CodeSyntaxError,
    CodeTimeoutError,
    CodeTypeError,
    Limits,
    Tool,
    tool,
)
from hatchway.core.errors import HatchwayError, InvalidSetting, InvalidTool

pytestmark = pytest.mark.anyio


def add(a: int, b: int = 10) -> int:
    """Add two numbers."""
    return a + b


async def double(x: int) -> int:
    """Twice x."""
    return 2 * x


async def run(sandbox: str, code: str, *tools: Any, **settings: Any) -> Any:
    async with CodeMode(sandbox, tools=tools, **settings) as mode:
        return await mode.run(code)


@pytest.mark.parametrize("code", [b"1", None, 5])
async def test_what_is_no_text_is_no_code(sandbox: str, code: Any) -> None:
    with pytest.raises(TypeError, match=f"code must be a str, not {type(code).__name__}"):
        await run(sandbox, code)


async def test_the_thinnest_path(sandbox: str) -> None:
    result = await run(sandbox, "print('hi')\nadd(1, b=2)", add)
    assert (result.output, result.stdout, result.usage.calls) == (3, "hi\n", 1)
    assert result.tier == {"monty": "language", "process": "process"}[sandbox]


async def test_sync_and_async_tools_in_one_action(sandbox: str) -> None:
    code = "import asyncio\nxs = await asyncio.gather(double(1), double(2))\n[add(x) for x in xs]"
    assert (await run(sandbox, code, add, double)).output == [12, 14]


async def test_parallel_calls_run_at_once(sandbox: str) -> None:
    peak = now = 0

    async def slow(i: int) -> int:
        nonlocal peak, now
        now += 1
        peak = max(peak, now)
        await asyncio.sleep(0.05)
        now -= 1
        return i

    code = "import asyncio\nawait asyncio.gather(*[slow(i) for i in range(20)])"
    assert (await run(sandbox, code, slow)).output == list(range(20))
    assert peak == 20


async def test_blocking_tools_run_at_once_and_off_the_loop(sandbox: str) -> None:
    seen: set[int] = set()
    together = threading.Barrier(3, timeout=5)

    def blocking(i: int) -> int:
        seen.add(threading.get_ident())
        together.wait()
        return i

    code = "import asyncio\nawait asyncio.gather(*[blocking(i) for i in range(3)])"
    assert (await run(sandbox, code, blocking, calls="async")).output == [0, 1, 2]
    assert threading.get_ident() not in seen


async def test_sequential_tools_do_not_overlap(sandbox: str) -> None:
    now = 0
    overlapped = False

    @tool(sequential=True)
    async def alone(i: int) -> int:
        nonlocal now, overlapped
        now += 1
        overlapped = overlapped or now > 1
        await asyncio.sleep(0.01)
        now -= 1
        return i

    code = "import asyncio\nawait asyncio.gather(*[alone(i) for i in range(5)])"
    assert (await run(sandbox, code, alone)).output == [0, 1, 2, 3, 4]
    assert not overlapped


async def test_a_sequential_tool_waits_for_a_thread_whose_time_was_up(sandbox: str) -> None:
    ended = threading.Event()

    @tool(sequential=True, timeout=0.02)
    def late() -> None:
        time.sleep(0.3)
        ended.set()

    @tool(sequential=True)
    async def after() -> bool:
        return ended.is_set()

    code = "try:\n    late()\nexcept RuntimeError:\n    pass\nawait after()"
    assert (await run(sandbox, code, late, after)).output is True


async def test_a_sequential_tool_with_a_timeout_does_not_wait_for_ever_for_such_a_thread(sandbox: str) -> None:
    over = threading.Event()

    @tool(sequential=True, timeout=0.02)
    def late() -> None:
        over.wait(30)

    code = "try:\n    late()\nexcept RuntimeError:\n    pass\nlate()"
    with pytest.raises(CodeRuntimeError) as failed:
        await run(sandbox, code, late)
    over.set()
    told = "the tool late still runs, though nobody waits for it any more; late cannot run beside it"
    assert told in str(failed.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("add('x')", "add(): parameter 'a' must be an integer, got 'x' (str)"),
        ("add()", "add(): missing required parameter 'a'"),
        ("add(1, c=2)", "add(): unknown parameter 'c'"),
        ("add(True)", "add(): parameter 'a' must be an integer, got True (bool)"),
    ],
)
async def test_bad_arguments_are_told_at_the_call(sandbox: str, call: str, message: str) -> None:
    code = f"try:\n    {call}\nexcept RuntimeError as e:\n    text = str(e)\ntext"
    assert message in (await run(sandbox, code, add)).output


async def test_a_tool_that_raises_is_caught_in_the_code(sandbox: str) -> None:
    class Odd(Exception):
        pass

    def fail(kind: str) -> None:
        raise {"value": ValueError("bad"), "odd": Odd("strange"), "key": KeyError("k")}[kind]

    code = """
seen = []
for kind in ["value", "odd", "key"]:
    try:
        fail(kind)
    except RuntimeError as e:
        seen.append(str(e))
seen
"""
    output = (await run(sandbox, code, fail)).output
    assert [re.sub("^ToolError: ", "", text) for text in output] == ["ValueError: bad", "Odd: strange", "KeyError: 'k'"]


async def test_an_uncaught_tool_error_ends_the_code_and_keeps_what_was(sandbox: str) -> None:
    def fail() -> None:
        raise ValueError("bad")

    with pytest.raises(CodeRuntimeError) as failed:
        await run(sandbox, "print('before')\nadd(1)\nfail()", add, fail)
    error = failed.value
    assert error.stdout == "before\n"
    assert [(r.call.function_name, r.state) for r in error.calls] == [("add", "done"), ("fail", "failed")]
    assert "line 3" in str(error)
    assert "ValueError: bad" in str(error)


async def test_a_tool_with_a_timeout(sandbox: str) -> None:
    @tool(timeout=0.05)
    def hang() -> None:
        time.sleep(0.5)

    @tool(timeout=0.05)
    async def ahang() -> None:
        await asyncio.sleep(5)

    code = """
seen = []
try:
    hang()
except RuntimeError as e:
    seen.append(str(e))
try:
    await ahang()
except RuntimeError as e:
    seen.append(str(e))
seen
"""
    output = (await run(sandbox, code, hang, ahang)).output
    assert [re.sub("^ToolError: ", "", t) for t in output] == [
        "the tool hang took longer than 0.05 s",
        "the tool ahang took longer than 0.05 s",
    ]


async def test_a_tool_that_cancels_itself_is_an_error_at_the_call(sandbox: str) -> None:
    async def gone() -> None:
        raise asyncio.CancelledError

    code = "try:\n    await gone()\nexcept RuntimeError as e:\n    text = str(e)\ntext"
    assert (await run(sandbox, code, gone)).output.endswith("the tool gone was cancelled")


async def test_a_tool_that_exits_does_not_take_the_host_along(sandbox: str) -> None:
    def leave() -> None:
        raise SystemExit(3)

    code = "try:\n    leave()\nexcept RuntimeError as e:\n    text = str(e)\ntext"
    assert (await run(sandbox, code, leave)).output.endswith("SystemExit: 3")


async def test_a_result_that_cannot_cross_is_an_error_at_the_call(sandbox: str) -> None:
    def odd() -> Any:
        return {"ok": 1, "bad": [object()]}

    code = "try:\n    odd()\nexcept RuntimeError as e:\n    text = str(e)\ntext"
    text = (await run(sandbox, code, odd)).output
    assert "what the tool odd returned cannot be given to the code: result" in text
    assert "['bad'][0] is object, which cannot cross the wall: " in text
    assert text.count("cannot cross the wall") == 1


async def test_a_context_reaches_the_tool(sandbox: str) -> None:
    seen: list[CallContext] = []

    def who(name: str, context: CallContext) -> str:
        seen.append(context)
        return name

    assert (await run(sandbox, "who('x')\nwho('y')", who)).output == "y"
    first, second = seen
    assert first.run_id == second.run_id
    assert first.idempotency_key != second.idempotency_key
    assert len({first.call_id, second.call_id}) == 2


async def test_a_name_close_to_a_tool_is_hinted(sandbox: str) -> None:
    with pytest.raises(CodeRuntimeError) as failed:
        await run(sandbox, "ad(1)", add)
    assert failed.value.hint == "did you mean the tool add?"
    assert "name 'ad' is not defined" in str(failed.value)


async def test_a_call_of_an_unknown_name_names_close_tools_inside_the_code() -> None:
    code = "try:\n    ad(1)\nexcept NameError as e:\n    text = str(e)\ntext"
    assert (await run("monty", code, add)).output == "name 'ad' is not defined; did you mean add?"
    assert (await run("monty", code.replace("ad(", "zzz("), add)).output == "name 'zzz' is not defined"


async def test_a_raw_tool_with_a_schema(sandbox: str) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    weather = Tool(name="weather", description="Weather", parameters=schema, func=lambda city: f"sun in {city}")
    assert (await run(sandbox, "weather('Oslo')", weather)).output == "sun in Oslo"


async def test_the_call_limit_ends_the_code(sandbox: str) -> None:
    with pytest.raises(CodeLimitError) as over:
        await run(sandbox, "for i in range(10):\n    print(i)\n    add(i)", add, limits=Limits(calls=3))
    assert over.value.limit == "calls"
    assert over.value.message == "the code made more than 3 tool calls"
    assert over.value.stdout == "0\n1\n2\n3\n"
    assert len(over.value.calls) == 3


@pytest.mark.parametrize("end", ["while True: pass", "1 / 0"])
async def test_an_error_tells_the_calls_whose_tools_were_at_work(sandbox: str, end: str) -> None:
    async def store(n: int) -> None:
        await asyncio.sleep(0 if n == 0 else 30)

    ends = f"async def ends():\n    await store(0)\n    {end}"
    code = f"import asyncio\n{ends}\nawait asyncio.gather(store(1), store(2), ends())"
    with pytest.raises((CodeTimeoutError, CodeRuntimeError)) as failed:
        await run(sandbox, code, store, limits=Limits(wall_seconds=0.5))
    told = [(record.call.kwargs["n"], record.state) for record in failed.value.calls]
    assert told == [(0, "done"), (1, "started"), (2, "started")]


async def test_the_three_ways_code_fails_before_or_while_it_runs(sandbox: str) -> None:
    async with CodeMode(sandbox, tools=[add]) as mode:
        with pytest.raises(CodeSyntaxError):
            await mode.run("x = (")
        with pytest.raises(CodeRuntimeError, match="ZeroDivisionError"):
            await mode.run("1/0")
        with pytest.raises(CodeTimeoutError, match=r"the code ran longer than 0\.3 s"):
            await mode.run("while True: pass", limits=Limits(wall_seconds=0.3))
        assert (await mode.run("add(1)")).output == 11


async def test_type_check_refuses_before_anything_runs() -> None:
    ran: list[int] = []

    def note(x: int) -> None:
        ran.append(x)

    with pytest.raises(CodeTypeError, match="note"):
        await run("monty", "note(1)\nnote('x')", note, type_check=True)
    assert ran == []
    assert (await run("monty", "note(1)\n5", note, type_check=True)).output == 5


async def test_inputs_are_names_in_the_code(sandbox: str) -> None:
    async with CodeMode(sandbox) as mode:
        assert (await mode.run("x + y", inputs={"x": 1, "y": 2})).output == 3


async def test_fresh_state_for_each_run_and_kept_state_in_a_session(sandbox: str) -> None:
    async with CodeMode(sandbox, tools=[add]) as mode:
        await mode.run("x = 5")
        with pytest.raises(CodeRuntimeError, match="name 'x' is not defined"):
            await mode.run("x")
        async with mode.session() as session:
            await session.run("x = add(5)")
            assert (await session.run("x")).output == 15


async def test_many_runs_at_once_do_not_mix(sandbox: str) -> None:
    async with CodeMode(sandbox, tools=[add]) as mode:
        results = await asyncio.gather(*[mode.run(f"[add({i}, k) for k in range(5)]") for i in range(20)])
    assert [r.output for r in results] == [[i + k for k in range(5)] for i in range(20)]


async def test_cancelling_a_run_leaves_the_mode_usable(sandbox: str) -> None:
    async with CodeMode(sandbox, tools=[add]) as mode:
        task = asyncio.create_task(mode.run("while True: pass"))
        await asyncio.sleep(0.2)
        started = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - started < 1
        assert (await mode.run("add(1)")).output == 11


async def test_cancelling_while_a_tool_runs_cancels_the_tool(sandbox: str) -> None:
    events: list[str] = []

    async def slow() -> None:
        events.append("started")
        try:
            await asyncio.sleep(30)
        finally:
            events.append("ended")

    async with CodeMode(sandbox, tools=[slow]) as mode:
        task = asyncio.create_task(mode.run("await slow()"))
        while not events:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert events == ["started", "ended"]


async def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidTool):
        CodeMode("monty", tools=[add, tool(add, approval="ask")])
    with pytest.raises(InvalidSetting):
        async with CodeMode("nope"):
            pass


@pytest.mark.parametrize("calls", ["sync", "async"])
async def test_a_parameter_may_have_any_name(sandbox: str, calls: Any) -> None:
    names = ("self", "args", "kwargs", "name", "class")
    schema = {"type": "object", "properties": {name: {"type": "integer"} for name in names}}
    echo = Tool(name="echo", description="", parameters=schema, func=lambda **given: given, calls=calls)
    code = f"{'await ' if calls == 'async' else ''}echo(self=1, args=2, kwargs=3, name=4, **{{'class': 5}})"
    assert (await run(sandbox, code, echo)).output == dict(zip(names, (1, 2, 3, 4, 5), strict=True))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"calls": "sync"}, "calls is 'declared', 'async' or 'written', not 'sync'"),
        ({"sandbox": None}, "a sandbox is a CodeSandbox or its name, not None\nCodeMode('auto')"),
        ({"approve": True}, "approve is a function that takes a call, not True\ndef approve(call)"),
        ({"limits": 5}, "limits takes Limits, not 5\nLimits(wall_seconds=5)"),
        ({"approval_seconds": -1}, "approval_seconds is a number above 0, not -1"),
        ({"rules": ["deny"]}, 'rules takes Rules, not \'deny\'\nRule("allow", "files.read")'),
        ({"discovery": "deep"}, "discovery is 'basic' or 'hybrid', not 'deep'"),
        ({"tools": add}, "tools is a list of functions and tools, not a single one\ntools=[it]"),
    ],
)
def test_a_setting_that_makes_no_sense_is_told_at_once(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(HatchwayError) as refused:
        CodeMode(**({"sandbox": "monty"} | settings))
    assert str(refused.value) == message
