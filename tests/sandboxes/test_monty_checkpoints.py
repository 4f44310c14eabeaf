"""Checkpoints of Monty: restored in another process, and refused when anything about them is not ours."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.calls import FunctionCall, FunctionSignature
from hatchway.core.errors import CodeRuntimeError, CodeTimeoutError
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeExecution
from hatchway.core.signing import seal, unseal
from hatchway.sandboxes.monty import MontySandbox
from hatchway.testing.conformance.drive import Heard, finish, next_call, next_calls, next_waiting, run, started

pytestmark = pytest.mark.anyio

RESTORE = """
import asyncio, json, sys
from hatchway.core.results import ExecutionResult
from hatchway.sandboxes.monty import MontySandbox

async def main():
    async with MontySandbox() as sandbox:
        execution = await sandbox.restore(sys.stdin.buffer.read())
        seen = []
        while not isinstance(came := await execution.next(), ExecutionResult):
            seen.append([came.call_id, came.function_name, came.args, dict(came.kwargs)])
            await execution.provide_result(came.args[0] * 10, call_id=came.call_id)
        print(json.dumps([seen, came.output, came.stdout, came.usage.calls]))

asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A signing key of the test's own."""
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "signing.key"))
    return tmp_path / "signing.key"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[MontySandbox]:
    sandbox = MontySandbox()
    yield sandbox
    asyncio.run(sandbox.aclose())


async def dumped(execution: CodeExecution) -> bytes:
    await next_waiting(execution)
    checkpoint = execution.dump()
    assert checkpoint is not None
    return checkpoint


async def checkpoint_at(sandbox: MontySandbox, code: str, *functions: FunctionSignature | str, **options: Any) -> bytes:
    """The checkpoint at the first call."""
    async with started(sandbox, code, functions, **options) as execution:
        await next_call(execution)
        return await dumped(execution)


def in_another_process(checkpoint: bytes) -> Any:
    ran = subprocess.run([sys.executable, "-c", RESTORE], input=checkpoint, capture_output=True, timeout=60)
    assert ran.returncode == 0, ran.stderr.decode()
    return json.loads(ran.stdout)


async def test_one_pending_call_is_answered_in_another_process(sandbox: MontySandbox) -> None:
    code = "print('before')\nx = server.ask(4, key='k')\nprint('after')\n[x, server.ask(5), server.deep.ask(6)]"
    checkpoint = await checkpoint_at(sandbox, code, "server.ask", "server.deep.ask")
    seen, output, stdout, calls = await asyncio.to_thread(in_another_process, checkpoint)
    assert seen == [
        ["0", "server.ask", [4], {"key": "k"}],
        ["1", "server.ask", [5], {}],
        ["2", "server.deep.ask", [6], {}],
    ]
    assert (output, stdout, calls) == ([40, 50, 60], "before\nafter\n", 3)


async def test_several_pending_calls_are_answered_in_another_process(sandbox: MontySandbox) -> None:
    code = """
import asyncio
async def twice(n):
    return await ask(await ask(n))
held = ask
await asyncio.gather(ask(1), twice(2), held(3), twice(4))
"""
    async with started(sandbox, code, [FunctionSignature(name="ask", is_async=True)]) as execution:
        calls = {call.args[0]: call for call in await next_calls(execution, 4)}
        await execution.provide_result(7, call_id=calls[4].call_id)
        await next_call(execution)
        checkpoint = await dumped(execution)
    seen, output, _, made = await asyncio.to_thread(in_another_process, checkpoint)
    assert output == [10, 200, 30, 70]
    assert sorted(args[0] for _, _, args, _ in seen) == [1, 2, 3, 7, 20]
    assert made == 6


async def test_what_was_printed_before_is_kept_and_not_streamed_again(sandbox: MontySandbox) -> None:
    code = "import sys\nprint('one')\nprint('warned', file=sys.stderr)\nask()\nprint('two')"
    checkpoint = await checkpoint_at(sandbox, code, "ask")
    heard = Heard()
    again = await sandbox.restore(checkpoint, on_output=heard)
    assert again is not None
    result = await finish(again, {"ask": lambda: None})
    assert (result.stdout, result.stderr) == ("one\ntwo\n", "warned\n")
    assert heard.pieces == [("stdout", "two\n")]


async def test_time_that_ran_before_counts_after(sandbox: MontySandbox) -> None:
    code = "import time\ntime.sleep(0.5)\nask()\ntime.sleep(0.5)\nask()"
    checkpoint = await checkpoint_at(sandbox, code, "ask", limits=Limits(wall_seconds=0.8))
    again = await sandbox.restore(checkpoint)
    assert again is not None
    with pytest.raises(CodeTimeoutError, match=r"the code ran longer than 0.8 s"):
        await finish(again, {"ask": lambda: None})


async def test_errors_after_a_restore_show_the_codes_own_lines(sandbox: MontySandbox) -> None:
    again = await sandbox.restore(await checkpoint_at(sandbox, "x = 1\nask(x)\nawait ask(x)", "ask"))
    assert again is not None
    with pytest.raises(CodeRuntimeError) as wrong_style:
        await finish(again, {"ask": lambda x: x})
    assert str(wrong_style.value) == (
        "Traceback (most recent call last):\n"
        '  File "<action>", line 3, in <module>\n'
        "    await ask(x)\n"
        "          ~~~~~~\n"
        "TypeError: ask is a plain function: call it as ask(...), without await"
    )


async def test_an_answer_the_code_has_not_reached_is_in_the_checkpoint(sandbox: MontySandbox) -> None:
    code = """
import asyncio
async def slow():
    return now("sync")
await asyncio.gather(ask(1), slow())
"""
    async with started(sandbox, code, ["now", FunctionSignature(name="ask", is_async=True)]) as execution:
        ask, now = await next_calls(execution, 2)
        await execution.provide_error(ValueError("no row 1"), call_id=ask.call_id)
        checkpoint = await dumped(execution)
    again = await sandbox.restore(checkpoint)
    assert again is not None
    assert await next_call(again) == now
    await again.provide_result("x")
    with pytest.raises(CodeRuntimeError, match="ValueError: no row 1"):
        await again.next()


async def test_a_checkpoint_of_another_version_backend_or_key_is_refused(
    sandbox: MontySandbox, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = await checkpoint_at(sandbox, "ask()", "ask")
    payload, claims = unseal(checkpoint, {})
    for other in ({"version": "0.0.1"}, {"backend": "jail"}, {"kind": "session"}):
        assert await sandbox.restore(seal(payload, {**claims, **other})) is None
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "another.key"))
    assert await sandbox.restore(checkpoint) is None
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(key_file))
    again = await sandbox.restore(checkpoint)
    assert again is not None
    await again.cancel()


async def test_signed_bytes_that_monty_cannot_load_are_refused(sandbox: MontySandbox) -> None:
    payload, claims = unseal(await checkpoint_at(sandbox, "ask()", "ask"), {})
    line, _, vm = payload.partition(b"\n")
    for damaged in (line + b"\n" + vm[:100], line + b"\n", b"[]\n" + vm, b"not a wire form\n" + vm):
        assert await sandbox.restore(seal(damaged, claims)) is None
    assert (await run(sandbox, "1 + 1")).output == 2


async def test_a_session_is_restored_with_state_limits_and_line_numbers(sandbox: MontySandbox) -> None:
    async with sandbox.session(limits=Limits(calls=1)) as session:
        await run(session, "def f(n):\n    return 1 / n")
        await run(session, "x = 5")
        checkpoint = await session.dump()
    assert checkpoint is not None
    async with sandbox.restore_session(checkpoint) as again:
        assert again is not None
        assert (await run(again, "x")).output == 5
        with pytest.raises(CodeRuntimeError) as failed:
            await run(again, "\nf(0)")
        assert '"<action>", line 2' in str(failed.value)
        assert '"<earlier action>", line 2, in f' in str(failed.value)
        with pytest.raises(Exception, match="the code made more than 1 tool calls"):
            await run(again, "ask()\nask()", {"ask": lambda: None})


async def test_a_session_that_runs_an_action_cannot_be_dumped(sandbox: MontySandbox) -> None:
    async with sandbox.session() as session:
        async with started(session, "ask()", ["ask"]) as execution:
            await next_call(execution)
            with pytest.raises(RuntimeError, match="the previous action has not ended"):
                await session.dump()
            await execution.provide_result(1)
            assert isinstance(await execution.next(), ExecutionResult)
        assert await session.dump() is not None


async def test_dump_is_for_waiting_executions_only(sandbox: MontySandbox) -> None:
    async with started(sandbox, "ask(1)", ["ask"]) as execution:
        call = await execution.next()
        assert isinstance(call, FunctionCall)
        assert execution.dump() is not None
        await execution.provide_result(1)
        with pytest.raises(RuntimeError, match="the execution is not waiting"):
            execution.dump()
