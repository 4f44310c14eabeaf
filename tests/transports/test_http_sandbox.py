"""Real executions whose calls go over HTTP."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hatchway.core.calls import FunctionCall, FunctionSignature, Waiting
from hatchway.core.errors import CodeRuntimeError, ToolDenied
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeExecution
from hatchway.sandboxes.process import ProcessSandbox
from hatchway.transports.http import HttpCallbackTransport

pytestmark = pytest.mark.anyio

FUNCTIONS = [FunctionSignature(name="add"), FunctionSignature(name="fetch", is_async=True)]


@asynccontextmanager
async def sandbox(**settings: Any) -> AsyncIterator[ProcessSandbox]:
    async with ProcessSandbox(transport=HttpCallbackTransport(**settings)) as it:
        yield it


async def drive(execution: CodeExecution, answer: Callable[[FunctionCall], Any]) -> ExecutionResult:
    """Answer each call as it comes, until the code ends."""
    while True:
        match await execution.next():
            case FunctionCall() as call:
                value = answer(call)
                if isinstance(value, BaseException):
                    await execution.provide_error(value, call_id=call.call_id)
                else:
                    await execution.provide_result(value, call_id=call.call_id)
            case ExecutionResult() as result:
                return result
            case Waiting():
                pass


async def output(code: str, answer: Callable[[FunctionCall], Any] = lambda call: call.args[0]) -> Any:
    async with sandbox() as it:
        return (await drive(await it.execute(code, FUNCTIONS), answer)).output


async def test_a_thousand_calls_one_after_the_other() -> None:
    async with sandbox() as it:
        result = await drive(await it.execute("sum(add(i) for i in range(1000))", FUNCTIONS), lambda call: call.args[0])
        assert (result.output, result.usage.calls) == (499500, 1000)


async def test_twenty_gathered_calls_wait_together() -> None:
    async with sandbox() as it:
        code = "import asyncio\nawait asyncio.gather(*(fetch(i) for i in range(20)))"
        execution = await it.execute(code, FUNCTIONS)
        for _ in range(20):
            assert isinstance(await execution.next(), FunctionCall)
        waiting = await execution.next()
        assert isinstance(waiting, Waiting)
        assert [call.args for call in waiting.pending] == [(i,) for i in range(20)]
        for call in reversed(waiting.pending):
            await execution.provide_result(call.args[0] + 1, call_id=call.call_id)
        assert (await drive(execution, lambda call: None)).output == list(range(1, 21))


async def test_more_calls_at_once_than_the_code_may_have_files() -> None:
    code = "import asyncio\nlen(await asyncio.gather(*(fetch(i) for i in range(600))))"
    assert await output(code) == 600


async def test_an_error_and_a_denied_call() -> None:
    code = """
try:
    add(1)
except ZeroDivisionError as e:
    first = str(e)
try:
    add(2)
except ToolDenied as e:
    second = str(e)
[first, second]
"""
    errors = {1: ZeroDivisionError("zero"), 2: ToolDenied("not allowed")}
    assert await output(code, lambda call: errors[call.args[0]]) == ["zero", "not allowed"]


async def test_ten_megabytes_each_way() -> None:
    assert await output("len(add('x' * 10_000_000))") == 10_000_000


async def test_threads() -> None:
    code = "from concurrent.futures import ThreadPoolExecutor\nlist(ThreadPoolExecutor(50).map(add, range(200)))"
    assert await output(code) == list(range(200))


async def test_a_session_keeps_its_names_and_gives_its_descriptors_back() -> None:
    count = "import os\nlen(os.listdir('/proc/self/fd'))"
    async with sandbox() as it, it.session() as session:
        opened: list[int] = []
        for i in range(4):
            code = f"x = globals().get('x', 0) + add({i + 1})\nassert x == {sum(range(i + 2))}\n{count}"
            opened.append((await drive(await session.execute(code, FUNCTIONS), lambda call: call.args[0])).output)
        assert opened[1] == opened[2] == opened[3]


async def test_many_executions_at_once() -> None:
    async with sandbox() as it:

        async def one(i: int) -> Any:
            return (await drive(await it.execute(f"[add({i}), add({i} + 1)]", FUNCTIONS), lambda c: c.args[0])).output

        assert await asyncio.gather(*map(one, range(20))) == [[i, i + 1] for i in range(20)]


async def test_what_is_no_message_ends_that_execution_only() -> None:
    async with sandbox() as it:
        bad = await it.execute("add._exchange.channel.send(b'nonsense\\n')\nimport time; time.sleep(60)", FUNCTIONS)
        good = await it.execute("add(1)", FUNCTIONS)
        with pytest.raises(
            CodeRuntimeError, match=r"^the code broke the sandbox protocol: a message is not readable: "
        ):
            await bad.next()
        assert (await drive(good, lambda call: "fine")).output == "fine"


async def test_nothing_is_left_of_an_execution_that_was_cancelled() -> None:
    async with sandbox() as it:
        await drive(await it.execute("add(1)", FUNCTIONS), lambda call: 1)
        before = await _settled()
        for _ in range(5):
            execution = await it.execute("add(1)", FUNCTIONS)
            await execution.next()
            await execution.cancel()
        assert await _settled() == before


async def _settled() -> tuple[int, int]:
    """Descriptors and threads of this process, once they stand still."""
    last, now = (-1, -1), (0, 0)
    while last != now:
        await asyncio.sleep(0.3)
        last, now = now, (len(os.listdir("/proc/self/fd")), threading.active_count())
    return now
