"""The guest: the Python an action sees, and its calls from event loops, threads, signal handlers and forks."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from hatchway.core.calls import FunctionCall, FunctionSignature, Waiting
from hatchway.core.errors import CodeRuntimeError, ToolDenied, ToolError
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeExecution
from hatchway.sandboxes.process import ProcessSandbox
from hatchway.testing.conformance.drive import LOOKUP, failure, next_call, next_calls, next_result, run, started
from hatchway.transports.stdio import GUEST

pytestmark = pytest.mark.anyio


@pytest.fixture
async def sandbox() -> AsyncGenerator[ProcessSandbox]:
    async with ProcessSandbox() as sandbox:
        yield sandbox


async def lookup(key: Any) -> Any:
    return key


async def waits_for(execution: CodeExecution) -> list[Any]:
    """The first arguments of the calls the code stands still for."""
    event = await execution.next()
    assert isinstance(event, Waiting), event
    return [call.args[0] for call in event.pending]


async def test_the_code_is_the_main_program(sandbox: ProcessSandbox) -> None:
    code = """
        import __main__, inspect, pickle, sys
        class Point:
            x = 1
        def twice(n):
            return 2 * n
        told = [__name__, sys.argv, __main__.twice(4), pickle.loads(pickle.dumps(Point)).x, inspect.getsource(twice)]
        if __name__ == "__main__":
            told.append("main")
        told
    """
    expected = ["__main__", [""], 8, 1, "def twice(n):\n    return 2 * n\n", "main"]
    assert (await run(sandbox, code)).output == expected


async def test_future_imports_hold_for_the_last_expression_too(sandbox: ProcessSandbox) -> None:
    code = "from __future__ import annotations\ndef f(x: nowhere): ...\n(lambda: f.__annotations__)()"
    assert (await run(sandbox, code)).output == {"x": "nowhere"}


async def test_there_is_nothing_to_read(sandbox: ProcessSandbox) -> None:
    assert (
        str(await failure(sandbox, CodeRuntimeError, "input()")).splitlines()[-1] == "EOFError: EOF when reading a line"
    )


async def test_output_below_print_is_kept_in_its_order(sandbox: ProcessSandbox) -> None:
    code = """
        import os, subprocess, sys
        print("one", end=" ", flush=True)
        os.write(1, b"two ")
        subprocess.run(["echo", "three"])
        print("lone \\ud800", file=sys.stderr)
        sys.stdout.buffer.write(b"\\xff bytes\\n")
    """
    result = await run(sandbox, code)
    assert result.stdout == "one two three\n\ufffd bytes\n"
    assert result.stderr == "lone \\ud800\n"


async def test_what_was_printed_before_a_call_is_heard_before_it(sandbox: ProcessSandbox) -> None:
    heard: list[str] = []
    code = "for i in range(50):\n    print(i, end=' ')\n    ping(i)"
    async with started(sandbox, code, ["ping"], on_output=lambda _, text: heard.append(text)) as execution:
        for i in range(50):
            call = await next_call(execution)
            assert call.args == (i,)
            assert "".join(heard).split() == [str(n) for n in range(i + 1)]
            await execution.provide_result(None)


async def test_a_fresh_program_waits_for_its_threads_as_python_does(sandbox: ProcessSandbox) -> None:
    code = """
        import threading, time
        def late():
            time.sleep(0.1)
            print("late", ask(1))
        threading.Thread(target=late).start()
        "first"
    """
    result = await run(sandbox, code, {"ask": lambda n: n + 1})
    assert (result.output, result.stdout) == ("first", "late 2\n")


async def test_error_classes_inside_the_code(sandbox: ProcessSandbox) -> None:
    class Odd(Exception):
        pass

    errors = [
        ToolError("a"), ToolDenied("b"), ValueError("c"), KeyError("d"), Odd("e"), StopIteration("f"),
        UnicodeDecodeError("utf-8", b"x", 0, 1, "g"), SystemExit("h"), OSError(2, "i"), Odd(),
        ExceptionGroup("j", [ValueError()]),
    ]  # fmt: skip
    code = """
        told = []
        for i in range(11):
            try:
                fail(i)
            except RuntimeError as e:
                told.append([type(e).__name__, str(e), isinstance(e, ToolError)])
            except Exception as e:
                told.append([type(e).__name__, str(e), None])
        told
    """
    async with started(sandbox, code, ["fail"]) as execution:
        for error in errors:
            await next_call(execution)
            await execution.provide_error(error)
        told = (await next_result(execution)).output
    assert told == [
        ["ToolError", "a", True],
        ["ToolDenied", "b", True],
        ["ValueError", "c", None],
        ["KeyError", "'d'", None],
        ["ToolError", "Odd: e", True],
        ["ToolError", "StopIteration: f", True],
        ["ToolError", "UnicodeDecodeError: 'utf-8' codec can't decode byte 0x78 in position 0: g", True],
        ["ToolError", "SystemExit: h", True],
        ["FileNotFoundError", "[Errno 2] i", None],
        ["ToolError", "Odd", True],
        ["ToolError", "ExceptionGroup: j (1 sub-exception): ValueError", True],
    ]


async def test_the_wrong_style_says_the_right_one(sandbox: ProcessSandbox) -> None:
    error = await failure(sandbox, CodeRuntimeError, "x = await add(1)", {"add": lambda n: n})
    assert str(error).splitlines()[-1] == "add is a plain function: call it as add(...), without await"
    code = "import asyncio\nawait asyncio.gather(add(1), add(2))"
    error = await failure(sandbox, CodeRuntimeError, code, {"add": lambda n: n})
    assert str(error).splitlines()[-1] == "add is a plain function: call it as add(...), without await"
    error = await failure(sandbox, CodeRuntimeError, "lookup(1)\n1", {"lookup": lookup})
    assert str(error) == "lookup is async: call it as await lookup(...)"
    error = await failure(sandbox, CodeRuntimeError, "lookup(1)['x']", {"lookup": lookup})
    assert str(error).splitlines()[-1] == "TypeError: lookup is async: call it as await lookup(...)"
    error = await failure(sandbox, CodeRuntimeError, "await lookup([lookup(1)])", {"lookup": lookup})
    assert str(error).splitlines()[-1] == "lookup is async: call it as await lookup(...)"


async def test_every_way_to_schedule_an_async_tool(sandbox: ProcessSandbox) -> None:
    code = """
        import asyncio
        got = [await lookup(1), await asyncio.create_task(lookup(2)), *await asyncio.gather(lookup(3), lookup(4))]
        got.append(await asyncio.wait_for(lookup(5), 10))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(lookup(6))
        got.append(task.result())
        got += sorted([await first for first in asyncio.as_completed([lookup(7), lookup(8)])])
        got.append(await asyncio.ensure_future(lookup(9)))
        [got, asyncio.iscoroutinefunction(lookup), asyncio.iscoroutine(call := lookup(0)), call.close()]
    """
    assert (await run(sandbox, code, {"lookup": lookup})).output == [list(range(1, 10)), True, True, None]


async def test_a_loop_of_the_codes_own(sandbox: ProcessSandbox) -> None:
    code = """
        import asyncio
        async def main():
            return await asyncio.gather(*[lookup(i) for i in range(5)])
        [asyncio.run(main()), asyncio.run(main()), add(1, 2)]
    """
    tools = {"lookup": lookup, "add": lambda a, b: a + b}
    assert (await run(sandbox, code, tools)).output == [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4], 3]


async def test_a_plain_call_while_async_ones_are_on_the_way(sandbox: ProcessSandbox) -> None:
    code = """
        import asyncio
        task = asyncio.create_task(lookup("slow"))
        await asyncio.sleep(0)
        quick = ask("quick")
        [quick, await task]
    """
    async with started(sandbox, code, [LOOKUP, "ask"]) as execution:
        slow, quick = await next_calls(execution, 2)
        assert [slow.args[0], quick.args[0]] == ["slow", "quick"]
        assert await waits_for(execution) == ["slow", "quick"]
        await execution.provide_result("s", call_id=slow.call_id)
        assert await waits_for(execution) == ["quick"]
        await execution.provide_result("q", call_id=quick.call_id)
        assert (await next_result(execution)).output == ["q", "s"]


async def test_plain_calls_from_threads_of_a_loop(sandbox: ProcessSandbox) -> None:
    code = """
        import asyncio
        await asyncio.gather(*[asyncio.to_thread(ask, i) for i in range(5)], *[lookup(i) for i in range(5, 8)])
    """
    async with started(sandbox, code, [LOOKUP, "ask"]) as execution:
        calls = await next_calls(execution, 8)
        assert sorted(await waits_for(execution)) == list(range(8))
        for call in reversed(calls):
            await execution.provide_result(call.args[0] * 2, call_id=call.call_id)
            await asyncio.sleep(0.001)
        while not isinstance(event := await execution.next(), ExecutionResult):
            assert isinstance(event, Waiting)
        assert event.output == [n * 2 for n in range(8)]


async def test_a_pool_of_twenty_threads(sandbox: ProcessSandbox) -> None:
    code = """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(20) as pool:
            got = list(pool.map(ask, range(200)))
        got == [i * 3 for i in range(200)]
    """
    assert (await run(sandbox, code, {"ask": lambda n: n * 3})).output is True


async def test_code_in_threads_stands_still_only_when_all_of_it_does(sandbox: ProcessSandbox) -> None:
    code = """
        import threading, time
        def busy():
            time.sleep(0.6)
        other = threading.Thread(target=busy)
        other.start()
        ask("a")
        other.join()
    """
    async with started(sandbox, code, ["ask"]) as execution:
        await next_call(execution)
        begun = time.monotonic()
        assert await waits_for(execution) == ["a"]
        assert time.monotonic() - begun > 0.3


async def test_a_timer_of_the_code_is_no_standstill(sandbox: ProcessSandbox) -> None:
    code = """
        import asyncio
        try:
            await asyncio.wait_for(lookup("slow"), 0.2)
        except asyncio.TimeoutError:
            told = "too late"
        [told, await lookup("next")]
    """
    async with started(sandbox, code, [LOOKUP]) as execution:
        slow, following = await next_calls(execution, 2)
        await execution.provide_result("ignored", call_id=slow.call_id)
        await execution.provide_result("n", call_id=following.call_id)
        assert (await next_result(execution)).output == ["too late", "n"]


async def test_an_alarm_breaks_a_call_and_the_next_one_works(sandbox: ProcessSandbox) -> None:
    code = """
        import signal
        def ring(*_):
            raise TimeoutError("ring")
        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            ask("slow")
        except TimeoutError as e:
            told = str(e)
        [told, ask("next")]
    """
    async with started(sandbox, code, ["ask"]) as execution:
        slow = await next_call(execution)
        while not isinstance(following := await execution.next(), FunctionCall):
            await asyncio.sleep(0.01)  # it seems to stand still: nobody sees the alarm coming
        await execution.provide_result("ignored", call_id=slow.call_id)
        assert await waits_for(execution) == ["next"]
        await execution.provide_result("n", call_id=following.call_id)
        assert (await next_result(execution)).output == ["ring", "n"]


async def test_a_call_by_a_signal_handler_inside_a_call_is_refused(sandbox: ProcessSandbox) -> None:
    code = """
        import signal
        told = []
        def ring(*_):
            try:
                ask("nested")
            except RuntimeError as e:
                told.append(str(e))
        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        [ask("outer"), told]
    """
    async with started(sandbox, code, ["ask"]) as execution:
        await next_call(execution)
        await asyncio.sleep(0.3)
        await execution.provide_result("o")
        refused = "a tool cannot be called by a signal handler that interrupted another call"
        assert (await next_result(execution)).output == ["o", [refused]]


async def test_a_process_pool_works(sandbox: ProcessSandbox) -> None:
    code = """
        import multiprocessing
        def square(n):
            return n * n
        with multiprocessing.get_context("fork").Pool(2) as pool:
            got = pool.map(square, range(5))
        [got, ask(1)]
    """
    assert (await run(sandbox, code, {"ask": lambda n: n})).output == [[0, 1, 4, 9, 16], 1]


async def test_between_actions_tasks_end_and_threads_lose_their_tools(sandbox: ProcessSandbox) -> None:
    first = """
        import asyncio, threading, time
        log = []
        async def forever():
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                log.append("cancelled")
                raise
        task = asyncio.create_task(forever())
        go = threading.Event()
        def later():
            go.wait()
            try:
                ask("from the old thread")
            except RuntimeError as e:
                log.append(str(e))
        thread = threading.Thread(target=later, daemon=True)
        thread.start()
        await asyncio.sleep(0)
    """
    asked: list[str] = []
    async with sandbox.session() as session:
        await run(session, first, {"ask": asked.append})
        result = await run(session, "go.set()\nthread.join()\nask('mine')\nlog", {"ask": asked.append})
    assert result.output == ["cancelled", "the action that started this thread is over"]
    assert asked == ["mine"]


async def test_a_thread_that_waits_when_its_action_ends_does_not_eat_the_next_one(sandbox: ProcessSandbox) -> None:
    first = """
        import threading
        told = []
        def wait():
            try:
                ask("never answered")
            except RuntimeError as e:
                told.append(str(e))
        threading.Thread(target=wait, daemon=True).start()
        ask("answered")
    """
    async with sandbox.session() as session:
        async with started(session, first, ["ask"]) as execution:
            while not isinstance(event := await execution.next(), ExecutionResult):
                if isinstance(event, FunctionCall) and event.args == ("answered",):
                    await execution.provide_result(None, call_id=event.call_id)
        for n in range(3):
            code = f"import time\ntime.sleep(0.05)\n[ask({n}), told]"
            result = await run(session, code, {"ask": lambda n: n * 2})
            assert result.output == [n * 2, ["the action that made this call is over"]]


async def test_claims_of_a_session_start_anew_with_each_action(sandbox: ProcessSandbox) -> None:
    async with sandbox.session() as session:
        for _ in range(2):
            async with started(session, "await lookup(1) + await lookup(2)", [LOOKUP]) as execution:
                for n in (1, 2):
                    assert (await next_call(execution)).args == (n,)
                    assert await waits_for(execution) == [n]
                    await execution.provide_result(n)
                assert (await next_result(execution)).output == 3


async def test_a_hundred_parallel_calls_come_in_order_and_at_once(sandbox: ProcessSandbox) -> None:
    code = "import asyncio\nsum(await asyncio.gather(*[lookup(i) for i in range(100)]))"
    async with started(sandbox, code, [LOOKUP], limits=Limits(wall_seconds=5)) as execution:
        calls = await next_calls(execution, 100)
        assert [call.args[0] for call in calls] == list(range(100))
        assert len(await waits_for(execution)) == 100
        for call in calls:
            await execution.provide_result(1, call_id=call.call_id)
        assert (await next_result(execution)).output == 100


async def test_an_async_tools_signature_and_name(sandbox: ProcessSandbox) -> None:
    stub = "async def search(query: str, limit: int = 5) -> list[str]: ..."
    search = FunctionSignature(name="web.search", stub=stub, is_async=True)
    code = "[repr(web.search), repr(call := web.search('x')), call.close()]"
    async with started(sandbox, code, [search]) as execution:
        assert (await next_result(execution)).output == [
            "<tool web.search(query: str, limit: int = 5) -> list[str]>",
            "<call of web.search, not awaited>",
            None,
        ]


async def test_a_plain_call_right_after_an_awaited_one(sandbox: ProcessSandbox) -> None:
    code = """
        import asyncio
        async def both(n):
            return [await lookup(n), ask(n), await lookup(n + 10)]
        await asyncio.gather(*[both(n) for n in range(4)])
    """
    result = await run(sandbox, code, {"lookup": lookup, "ask": lambda n: -n})
    assert result.output == [[n, -n, n + 10] for n in range(4)]


@pytest.mark.parametrize("form", ["[x]", "(x,)", "{'a': x}", "{1: x}", "frozenset([x])"])
async def test_nesting_crosses_or_is_refused_at_the_call(sandbox: ProcessSandbox, form: str) -> None:
    code = f"""
        x, told = 0, None
        for n in range(250):
            x = {form}
            try:
                assert echo(x) == x
            except TypeError as e:
                told = str(e)
                break
        [n, told]
    """
    depth, told = (await run(sandbox, code, {"echo": lambda x: x})).output
    assert depth > 60
    assert told.endswith("is nested deeper than 200 levels, or contains itself")


def test_the_rehearsal_of_a_fresh_interpreter_is_a_whole_action_that_leaves_no_trace() -> None:
    """A rehearsal that failed would warm up the wrong half of the guest, and nobody would see it but a stopwatch."""
    script = f"""
import os, random, runpy, sys
runpy.run_path({str(GUEST / "__main__.py")!r})["load"]()
from _hatchway_guest.channel import PipeChannel
from _hatchway_guest.interpreter import Interpreter, Stage
interpreter = Interpreter(PipeChannel(*os.pipe()))
main, drawn = sys.modules["__main__"], set()
for times, stage in ((1, None), (5, Stage(*os.pipe()))):
    print(interpreter.warm_up(times, stage).decode().strip())
    drawn.add(random.random())
print(sys.modules["__main__"] is main, interpreter._exchange.action, len(drawn), os.urandom(4) != os.urandom(4))
"""
    ended = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, timeout=30, check=True)
    whole = '{"type":"execution_complete","output":3}'
    assert ended.stdout.splitlines() == [whole, whole, "True 0 2 True"]
