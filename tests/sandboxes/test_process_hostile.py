"""Code that fights back: forged messages, false claims, processes that try to stay."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from hatchway.core.calls import FunctionCall, Waiting
from hatchway.core.errors import (
    CodeExecutionError,
    CodeLimitError,
    CodeRuntimeError,
    CodeTimeoutError,
    SandboxCrashed,
)
from hatchway.core.limits import MIB, Limits
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeExecution
from hatchway.sandboxes.process import ProcessSandbox
from hatchway.testing.conformance.descendants import marked
from hatchway.testing.conformance.drive import failure, next_call, run, started

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

FORGE = """
    import os
    def forge(data):
        for fd in range(3, 32):
            try:
                while data:
                    data = data[os.write(fd, data):]
                return
            except OSError:
                pass
"""
BROKE = "the code broke the sandbox protocol: "


@pytest.fixture
async def sandbox() -> AsyncGenerator[ProcessSandbox]:
    async with ProcessSandbox() as sandbox:
        yield sandbox


def _call(call_id: str, idle: str = "") -> bytes:
    text = f'{{"type":"function_call","call_id":"{call_id}","function_name":"ping","args":[],"kwargs":{{}}{idle}}}\n'
    return text.encode()


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (b"junk\n", "a message is not readable: not a wire form: StopIteration"),
        (b"\xff\xfe\n", "a message is not readable: not a wire form: UnicodeDecodeError"),
        (b"[]\n", "a message is not an object"),
        (b'{"type":"execute"}\n', "a message of unknown type"),
        (b'{"type":{}}\n', "a message of unknown type"),
        (b'{"type":"ready"}\n', "the guest is ready twice"),
        (b'{"type":"idle","answers":-1}\n', "an idle claim without a proper count"),
        (b'{"type":"execution_failed","kind":"host","message":"x"}\n', "a failure without its kind or message"),
        (_call("x" * 65), "a call without a proper id"),
        (_call("\u00e4"), "a call without a proper id"),
        (b'{"type":"function_call","call_id":"1"}\n', "a call without its function_name"),
        (_call("7") + _call("7"), "the call id 7 came twice"),
        (
            b'{"type":"function_call","call_id":"1","function_name":"","args":[],"kwargs":{}}\n',
            "a call without a proper function name",
        ),
        (
            b'{"type":"function_call","call_id":"1","function_name":"f","args":{},"kwargs":{}}\n',
            "a call without proper arguments",
        ),
        (
            b'{"type":"function_call","call_id":"1","function_name":"f","args":[],"kwargs":{"$":"dict","v":[[1,2]]}}\n',
            "a call without proper arguments",
        ),
        (b'{"a":' * 100_000 + b"\n", "a message is not readable: not a wire form: RecursionError"),
        (b"[" * 100_000 + b"\n", "a message is not an object"),
    ],
)
async def test_a_forged_message_ends_the_execution_and_nothing_else(
    sandbox: ProcessSandbox, frame: bytes, message: str
) -> None:
    error = await failure(
        sandbox, CodeRuntimeError, f"{FORGE}    forge({frame!r})\n    while True: pass\n", {"ping": print}
    )
    assert str(error) == BROKE + message
    assert (await run(sandbox, "1 + 1")).output == 2


async def test_a_line_without_end(sandbox: ProcessSandbox) -> None:
    code = f"{FORGE}    forge(b'{{\"type\":\"')\n    while True: forge(b'x' * 1_000_000)\n"
    error = await failure(sandbox, CodeRuntimeError, code, limits=Limits(value_bytes=4 * MIB))
    assert str(error) == f"{BROKE}a message is longer than {4 * MIB + 64 * 1024} bytes"


async def test_dead_inside_a_message_it_is_told_how_it_died(sandbox: ProcessSandbox) -> None:
    code = f"{FORGE}    forge(b'{{\"type\":')\n    os._exit(3)\n"
    error = await failure(sandbox, CodeRuntimeError, code)
    assert str(error) == "the interpreter died: exit code 3"


async def test_calls_that_would_fill_the_hosts_memory(sandbox: ProcessSandbox) -> None:
    frame = '{"type":"function_call","call_id":"%d","function_name":"f","args":["%s"],"kwargs":{}}\\n'
    code = f"{FORGE}    for i in range(100): forge(('{frame}' % (i, 'x' * 900_000)).encode())\n"
    error = await failure(sandbox, CodeRuntimeError, code, {"f": _hang}, limits=Limits(value_bytes=MIB))
    assert str(error) == BROKE + "the unanswered calls are too large together"


async def _hang(*_: object) -> None:
    await asyncio.sleep(10)


async def test_a_forged_end_is_an_end_like_any_other(sandbox: ProcessSandbox) -> None:
    """A frame carries no authority: the code can say that it ended with this output, and then it has."""
    code = FORGE + '    forge(b\'{"type":"execution_complete","output":7}\\n\')\n    while True: pass\n'
    assert (await run(sandbox, code)).output == 7


async def test_an_answer_to_a_forged_call_is_not_taken_for_another(sandbox: ProcessSandbox) -> None:
    code = f"{FORGE}    forge({_call('9.9')!r})\n    ping('mine')\n"
    answers = iter(["forged", "mine"])
    assert (await run(sandbox, code, {"ping": lambda *_: next(answers)})).output == "mine"


async def test_a_call_of_what_was_not_offered_is_refused_at_the_wall(sandbox: ProcessSandbox) -> None:
    """The driver never hears of it; whoever kept a tool from an earlier action is told inside."""
    forged = b'{"type":"function_call","call_id":"f","function_name":"os.system","args":["id"],"kwargs":{}}\n'
    code = f"{FORGE}    forge({forged!r})\n    ping()\n"
    assert (await run(sandbox, code, {"ping": lambda: "only this one"})).output == "only this one"
    async with sandbox.session() as session:
        assert (await run(session, "kept = ping\nkept()", {"ping": lambda: 1})).output == 1
        error = await failure(session, CodeRuntimeError, "kept()")
        assert "ToolError: there is no tool ping" in str(error)
        assert (await run(session, "2")).output == 2


async def test_closing_the_channel_is_told(sandbox: ProcessSandbox) -> None:
    error = await failure(sandbox, CodeRuntimeError, "import os, time\nos.closerange(3, 64)\ntime.sleep(30)")
    assert str(error) == "the code closed its channel to the host"


async def test_a_false_claim_of_idleness_buys_no_cpu(sandbox: ProcessSandbox) -> None:
    """It claims to wait for a forged call and burns CPU: the clock stands, but what it burns counts."""
    idle = ',"idle":0'
    code = f"{FORGE}    forge({_call('9.9', idle)!r})\n    while True: pass\n"
    begun = time.monotonic()
    async with started(sandbox, code, ["ping"], limits=Limits(wall_seconds=0.5)) as execution:
        await next_call(execution)
        assert isinstance(await execution.next(), Waiting)
        with pytest.raises(CodeTimeoutError, match=r"the code ran longer than 0\.5 s"):
            await _end_of(execution)
    assert time.monotonic() - begun < 5


async def _end_of(execution: CodeExecution) -> None:
    while True:
        await asyncio.sleep(0.02)
        await execution.next()


async def test_a_claim_made_before_the_last_answer_is_ignored(sandbox: ProcessSandbox) -> None:
    idle = ',"idle":0'
    code = f"{FORGE}    ping()\n    forge({_call('9.9', idle)!r})\n    import time; time.sleep(0.5)\n    5\n"
    async with started(sandbox, code, ["ping"], limits=Limits(wall_seconds=3)) as execution:
        await next_call(execution)
        await execution.provide_result(None)
        forged = await next_call(execution)
        assert forged.call_id == "9.9"
        assert isinstance(await execution.next(), ExecutionResult)


async def test_a_child_process_cannot_speak_for_the_code(sandbox: ProcessSandbox) -> None:
    code = """
        import os
        r, w = os.pipe()
        if os.fork() == 0:
            try:
                ping()
            except RuntimeError as e:
                os.write(w, str(e).encode())
            "the child's output"
        else:
            os.wait()
            told = os.read(r, 1000).decode()
        told if "told" in globals() else None
    """
    made: list[object] = []
    result = await run(sandbox, code, {"ping": lambda: made.append(1)})
    assert result.output == "tools can be called only in the process the action started in"
    assert made == []


STAY = """
    import ctypes, os, signal, time
    ctypes.CDLL(None).prctl(15, mark.encode(), 0, 0, 0)
    for number in (1, 2, 3, 15):
        signal.signal(number, signal.SIG_IGN)
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.setpgid(0, 0)
                while True:
                    time.sleep(0.01)
            os._exit(0)
    print("up", flush=True)
"""
SPIN = "    while True:\n        time.sleep(0.01)\n"


async def test_what_daemonises_and_ignores_signals_dies_at_the_deadline(sandbox: ProcessSandbox) -> None:
    mark = _mark("a")
    limits = Limits(wall_seconds=0.5)
    error = await failure(sandbox, CodeTimeoutError, STAY + SPIN, inputs={"mark": mark}, limits=limits)
    assert error.stdout == "up\n"
    assert marked(mark) == []


@pytest.mark.parametrize("signal_number", [9, 19])
async def test_killing_or_stopping_its_supervisor_helps_nobody(sandbox: ProcessSandbox, signal_number: int) -> None:
    mark = _mark(f"s{signal_number}")
    code = f"{STAY}    os.kill(os.getppid(), {signal_number})\n{SPIN}"
    begun = time.monotonic()
    limits = Limits(wall_seconds=0.5)
    await failure(sandbox, CodeExecutionError, code, inputs={"mark": mark}, limits=limits)
    assert time.monotonic() - begun < 4
    assert marked(mark) == []
    assert (await run(sandbox, "1 + 1")).output == 2


async def test_killing_the_spawner_ends_everything_it_started(sandbox: ProcessSandbox) -> None:
    mark = _mark("w")
    code = f"{STAY}    ppid = int(open(f'/proc/{{os.getppid()}}/stat').read().split()[3])\n    os.kill(ppid, 9)\n{SPIN}"
    execution = await sandbox.execute(_dedent(code), inputs={"mark": mark})
    with pytest.raises(SandboxCrashed):
        await execution.next()
    await _until_gone(mark)
    assert (await run(sandbox, "1 + 1")).output == 2


async def test_cancel_leaves_nothing_when_it_returns(sandbox: ProcessSandbox) -> None:
    mark = _mark("c")
    heard = asyncio.Event()
    code = _dedent(STAY + SPIN)
    execution = await sandbox.execute(code, inputs={"mark": mark}, on_output=lambda *_: heard.set())
    await heard.wait()
    assert len(marked(mark)) >= 4
    begun = time.monotonic()
    await execution.cancel()
    assert marked(mark) == []
    assert time.monotonic() - begun < 2


async def test_a_fork_bomb_is_stopped_by_the_limit_on_processes(sandbox: ProcessSandbox) -> None:
    mark = _mark("f")
    code = """
        import ctypes, os, time
        libc = ctypes.CDLL(None)
        libc.prctl(15, mark.encode(), 0, 0, 0)
        while True:
            libc.fork()
            time.sleep(0.02)
    """
    error = await failure(sandbox, CodeLimitError, code, inputs={"mark": mark}, limits=Limits(processes=8))
    assert error.limit == "processes"
    assert error.message == "the code went over its limit of processes"
    await _until_gone(mark)


async def test_threads_past_the_limit_are_refused_at_once(sandbox: ProcessSandbox) -> None:
    code = """
        import threading, time
        started = 0
        try:
            for _ in range(50):
                threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
                started += 1
        except RuntimeError as e:
            told = str(e)
        [started, told]
    """
    result = await run(sandbox, code, limits=Limits(processes=10))
    assert result.output == [9, "can't start new thread: Limits.processes is 10"]


async def test_fifty_at_once_with_twenty_calls_each(sandbox: ProcessSandbox) -> None:
    async def one(me: int) -> object:
        code = f"[ask({me}, i) for i in range(20)]"
        return (await run(sandbox, code, {"ask": lambda a, b: [a, b]})).output

    got = await asyncio.gather(*[one(n) for n in range(50)])
    assert got == [[[n, i] for i in range(20)] for n in range(50)]


async def test_ten_thousand_calls_take_no_more_memory_than_a_few(sandbox: ProcessSandbox) -> None:
    code = "total = 0\nfor i in range(10_000):\n    total += len(echo('x' * 100))\ntotal"
    async with started(sandbox, code, ["echo"]) as execution:
        before = 0
        for n in range(10_000):
            call = await execution.next()
            assert isinstance(call, FunctionCall)
            await execution.provide_result(call.args[0])
            if n == 1000:
                before = _resident()
        result = await execution.next()
        assert isinstance(result, ExecutionResult)
        assert result.output == 1_000_000
    assert _resident() - before < 4 * MIB


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _mark(name: str) -> str:
    return f"hw{os.getpid()}{name}"[:15]


def _dedent(code: str) -> str:
    return "\n".join(line.removeprefix("    ") for line in code.splitlines())


async def _until_gone(mark: str) -> None:
    for _ in range(200):
        if not marked(mark):
            return
        await asyncio.sleep(0.02)
    pytest.fail(f"processes {marked(mark)} are still there")
