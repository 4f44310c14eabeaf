"""The stdio transport by itself: a program of one's own, every fault of the channel, and the framing."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hatchway.core.calls import FunctionCall, FunctionSignature
from hatchway.core.errors import CodeRuntimeError, CodeSyntaxError, ToolDenied, TransportError, ValueNotPortable
from hatchway.core.limits import MIB
from hatchway.core.transport import Completed, Idle
from hatchway.transports.http.stub import program
from hatchway.transports.stdio import MAX_UNREAD, StdinStdoutTransport

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def running(
    code: str, functions: list[Any] | None = None, *, as_action: bool = True
) -> AsyncGenerator[StdinStdoutTransport]:
    """A program of the caller's own, started as the seed does it: stub and code in one text."""
    transport = StdinStdoutTransport()
    config = await transport.start(functions or ["add"])
    text = program(config, code) if as_action else f"{config.stub_code}\n{code}"
    fds = transport.guest_fds
    assert fds is not None
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", text],
        env=dict(config.env_vars),
        pass_fds=fds,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    transport.release_guest_fds()
    try:
        yield transport
    finally:
        await transport.stop()
        child.kill()
        child.wait()


@asynccontextmanager
async def spoken(by: Callable[[int, int], None] | None = None) -> AsyncGenerator[tuple[StdinStdoutTransport, int, int]]:
    """A transport whose guest is this test: (transport, read fd, write fd)."""
    transport = StdinStdoutTransport(value_bytes=MIB)
    await transport.start([])
    fds = transport.guest_fds
    assert fds is not None
    read_fd, write_fd = (os.dup(fd) for fd in fds)
    transport.release_guest_fds()
    try:
        yield transport, read_fd, write_fd
    finally:
        await transport.stop()
        for fd in (read_fd, write_fd):
            try:
                os.close(fd)
            except OSError:
                pass


def call_line(call_id: str, *args: Any, **more: Any) -> bytes:
    message = {
        "type": "function_call",
        "call_id": call_id,
        "function_name": "f",
        "args": list(args),
        "kwargs": {},
        **more,
    }
    return json.dumps(message).encode() + b"\n"


async def test_a_program_of_ones_own_calls_and_tells_its_output() -> None:
    async with running("x = add(1, b=2)\n{'sum': x}") as transport:
        call = await transport.wait_for_call()
        assert (call.function_name, call.args, dict(call.kwargs)) == ("add", (1,), {"b": 2})
        await transport.send_result(3)
        assert (await transport.wait_for_completion()).output == {"sum": 3}


async def test_stub_and_code_as_one_text() -> None:
    code = "_hatchway_complete([add(i) for i in range(3)])"
    async with running(code, as_action=False) as transport:
        for i in range(3):
            call = await transport.wait_for_call()
            await transport.send_result(call.args[0] * 10, call_id=call.call_id)
            assert call.args == (i,)
        assert (await transport.wait_for_completion()).output == [0, 10, 20]


async def test_errors_reach_the_code_and_its_own_come_back() -> None:
    code = "try:\n    add()\nexcept ToolDenied as e:\n    told = str(e)\nadd(told)"
    async with running(code) as transport:
        await transport.wait_for_call()
        await transport.send_error(ToolDenied("not today"))
        assert (await transport.wait_for_call()).args == ("not today",)
        await transport.send_error(KeyError("row 7"))
        with pytest.raises(CodeRuntimeError, match="KeyError: 'row 7'"):
            await transport.wait_for_completion()
    async with running("x = = 1") as transport:
        with pytest.raises(CodeSyntaxError, match="invalid syntax"):
            await transport.wait_for_completion()


async def test_a_program_that_does_not_tell_its_end_has_failed() -> None:
    async with running("pass", as_action=False) as transport:
        with pytest.raises(CodeRuntimeError, match="the program ended without saying so"):
            await transport.wait_for_completion()
    async with running("import os\nos._exit(1)") as transport:
        with pytest.raises(EOFError):
            await transport.wait_for_completion()


async def test_parallel_calls_of_an_async_tool() -> None:
    lookup = FunctionSignature(name="lookup", is_async=True)
    async with running("import asyncio\nawait asyncio.gather(lookup(1), lookup(2))", [lookup]) as transport:
        calls = [await transport.wait_for_call() for _ in range(2)]
        assert await transport.receive() == Idle(0)
        with pytest.raises(ValueError, match="2 calls are pending: say which by call_id"):
            await transport.send_result(1)
        for call in reversed(calls):
            await transport.send_result(call.args[0] * 2, call_id=call.call_id)
        assert (await transport.wait_for_completion()).output == [2, 4]


async def test_ten_megabytes_each_way() -> None:
    async with running("len(add(add('get')))") as transport:
        await transport.wait_for_call()
        await transport.send_result("x" * 10 * MIB)
        call = await transport.wait_for_call()
        assert len(call.args[0]) == 10 * MIB
        await transport.send_result(call.args[0])
        assert (await transport.wait_for_completion()).output == 10 * MIB


async def test_a_large_result_does_not_block_the_loop() -> None:
    async with spoken() as (transport, read_fd, write_fd):
        os.write(write_fd, call_line("1"))
        await transport.wait_for_call()
        sending = asyncio.create_task(transport.send_result("x" * (MIB - 100)))
        await asyncio.sleep(0.05)
        assert not sending.done()
        got = 0
        while got < MIB - 100:
            got += len(await asyncio.to_thread(os.read, read_fd, 1 << 16))
        await sending


async def test_giving_up_on_a_large_result_leaves_the_framing_whole() -> None:
    async with spoken() as (transport, read_fd, write_fd):
        os.write(write_fd, call_line("1") + call_line("2"))
        for _ in range(2):
            await transport.wait_for_call()
        sending = asyncio.create_task(transport.send_result("x" * 500_000, call_id="1"))
        await asyncio.sleep(0.01)
        sending.cancel()
        second = asyncio.create_task(transport.send_result("y", call_id="2"))
        data = b""
        while data.count(b"\n") < 2:
            data += await asyncio.to_thread(os.read, read_fd, 1 << 16)
        await second
        assert [json.loads(line)["call_id"] for line in data.splitlines()] == ["1", "2"]


async def test_half_a_message_waits_for_the_rest() -> None:
    async with spoken() as (transport, _, write_fd):
        line = call_line("1", "ä" * 50)
        for i in range(len(line)):
            os.write(write_fd, line[i : i + 1])
            await asyncio.sleep(0)
        assert (await transport.wait_for_call()).args == ("ä" * 50,)


async def test_a_channel_that_ends_inside_a_message_is_broken() -> None:
    async with spoken() as (transport, _, write_fd):
        os.write(write_fd, call_line("1") + b'{"type":"func')
        os.close(write_fd)
        assert (await transport.wait_for_call()).call_id == "1"
        for _ in range(2):
            with pytest.raises(TransportError, match="the channel ended inside a message"):
                await transport.receive()


async def test_a_guest_that_leaves_in_the_middle_of_a_call() -> None:
    async with spoken() as (transport, read_fd, write_fd):
        os.write(write_fd, call_line("1"))
        await transport.wait_for_call()
        os.close(read_fd)
        os.close(write_fd)
        with pytest.raises(TransportError, match="the channel broke: Broken pipe"):
            await transport.send_result(1)
        with pytest.raises(EOFError):
            await transport.receive()


async def test_what_is_no_message_ends_the_channel() -> None:
    async with spoken() as (transport, _, write_fd):
        os.write(write_fd, call_line("1") + b"hello\n" + call_line("2"))
        assert (await transport.wait_for_call()).call_id == "1"
        for _ in range(2):
            with pytest.raises(TransportError, match="a message is not readable"):
                await transport.receive()


async def test_a_call_id_that_came_before_is_refused_also_when_it_was_answered() -> None:
    async with spoken() as (transport, _, write_fd):
        os.write(write_fd, call_line("1"))
        await transport.wait_for_call()
        await transport.send_result(1)
        os.write(write_fd, call_line("1"))
        with pytest.raises(TransportError, match="the call id 1 came twice"):
            await transport.receive()


async def test_a_line_past_the_limit() -> None:
    async with spoken() as (transport, _, write_fd):
        writing = asyncio.create_task(asyncio.to_thread(_write_all, write_fd, b"{" * 2 * MIB))
        with pytest.raises(TransportError, match=f"a message is longer than {MIB + 64 * 1024} bytes"):
            await transport.receive()
        await transport.stop()
        await writing


async def test_what_does_not_begin_like_a_message_is_not_waited_for() -> None:
    async with spoken() as (transport, _, write_fd):
        os.write(write_fd, b"x")
        with pytest.raises(TransportError, match="a message is not an object"):
            await transport.receive()


def _write_all(fd: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(fd, data) :]
    except BrokenPipeError:
        pass


async def test_answers_that_are_refused_leave_the_call_pending() -> None:
    async with spoken() as (transport, read_fd, write_fd):
        os.write(write_fd, call_line("1"))
        await transport.wait_for_call()
        with pytest.raises(ValueNotPortable, match=r"result\['a'\] is builtin_function_or_method"):
            await transport.send_result({"a": print})
        with pytest.raises(
            ValueNotPortable, match=r"the result takes 1100002 bytes on the wire, Limits\.value_bytes is 1048576"
        ):
            await transport.send_result("x" * 1_100_000)
        with pytest.raises(ValueError, match="no pending call '2'"):
            await transport.send_result(1, call_id="2")
        await transport.send_result(1, call_id="1")
        assert json.loads(os.read(read_fd, 1000)) == {"type": "result", "call_id": "1", "value": 1}
        with pytest.raises(ValueError, match="0 calls are pending"):
            await transport.send_error(RuntimeError())


async def test_stale_claims_are_left_out_and_current_ones_told() -> None:
    async with spoken() as (transport, _, write_fd):
        os.write(write_fd, call_line("1", idle=0) + call_line("2", idle=0))
        assert isinstance(await transport.receive(), FunctionCall)
        await transport.send_result(1, call_id="1")
        assert isinstance(await transport.receive(), FunctionCall)
        os.write(write_fd, b'{"type":"idle","answers":1}\n')
        assert await transport.receive() == Idle(1)


async def test_a_host_that_does_not_ask_lets_the_guest_wait() -> None:
    async with spoken() as (transport, _, write_fd):
        os.set_blocking(write_fd, False)
        sent = 0
        for _ in range(200):  # far more than is kept, and than the pipe holds
            try:
                while True:
                    sent += os.write(write_fd, call_line(f"c{sent}")) > 0
            except BlockingIOError:
                await asyncio.sleep(0.001)
        assert MAX_UNREAD < sent < 10_000
        for _ in range(sent):
            await transport.wait_for_call()


async def test_start_stop_and_start_again() -> None:
    transport = StdinStdoutTransport()
    await transport.start([])
    with pytest.raises(TransportError, match="this transport already serves an execution"):
        await transport.start([])
    waiting = asyncio.create_task(transport.receive())
    await asyncio.sleep(0)
    await transport.stop()
    await transport.stop()
    with pytest.raises(EOFError, match="the transport was stopped"):
        await waiting
    await transport.start([])
    assert transport.guest_fds is not None
    os.write(transport.guest_fds[1], b'{"type":"execution_complete","output":1}\n')
    assert await transport.receive() == Completed(1)
    await transport.stop()


async def test_asking_twice_at_a_time_is_refused_and_a_cancelled_question_loses_nothing() -> None:
    async with spoken() as (transport, _, write_fd):
        asking = asyncio.create_task(transport.receive())
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="already being awaited"):
            await transport.receive()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        os.write(write_fd, call_line("1"))
        assert (await transport.wait_for_call()).call_id == "1"


async def test_the_loop_has_its_turns_while_a_guest_calls_without_a_pause() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with running("for i in range(2000):\n    add(i)") as transport:
        counting = asyncio.create_task(count())
        for _ in range(2000):
            await transport.wait_for_call()
            await transport.send_result(None)
        counting.cancel()
        await transport.wait_for_completion()
    assert turns > 2000 / 32
