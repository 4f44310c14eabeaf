"""Checkpoints: a paused execution as bytes, restored at its pending calls; damaged bytes give None."""

from __future__ import annotations

from hatchway.core.errors import CodeRuntimeError, CodeTimeoutError
from hatchway.core.limits import Limits
from hatchway.core.sandbox import CodeExecution, CodeSandbox
from hatchway.testing.conformance.checks import NotOffered, check
from hatchway.testing.conformance.drive import (
    LOOKUP,
    Heard,
    finish,
    killed,
    next_call,
    next_calls,
    next_result,
    next_waiting,
    run,
    started,
)
from hatchway.testing.conformance.expect import contains, equal, fail, raises, shown

ONE = "x = 40\nprint('before')\ny = ask(x, key=[1])\nprint('after')\nx + y"
GATHER = (
    "import asyncio\nprint('before')\ngot = await asyncio.gather(*[lookup(i) for i in range(4)])\nprint('after')\ngot"
)
JUNK = (b"", b"\0", b"junk", b"hatchway-checkpoint-1\n\n", b"\xff" * 1000, b"{}\n" + b"0" * 64 + b"\n")


async def dumped(execution: CodeExecution) -> bytes:
    """The checkpoint of a waiting execution."""
    await next_waiting(execution)
    checkpoint = execution.dump()
    if checkpoint is None:
        raise NotOffered("dump() gives None: this backend makes no checkpoints")
    return checkpoint


async def restored(sandbox: CodeSandbox, checkpoint: bytes) -> CodeExecution:
    """The execution a checkpoint came from."""
    execution = await sandbox.restore(checkpoint)
    if execution is None:
        fail("restore() gave None for a checkpoint of its own")
    return execution


async def checkpoint_of_one(sandbox: CodeSandbox) -> bytes:
    """A checkpoint with one pending call; the execution it came from is dead."""
    async with started(sandbox, ONE, ["ask"]) as execution:
        await next_call(execution)
        return await dumped(execution)


@check("an execution dumped at one call is restored at it: same id, same arguments, same state, same stdout")
async def check_one_pending(sandbox: CodeSandbox) -> None:
    async with started(sandbox, ONE, ["ask"]) as execution:
        call = await next_call(execution)
        checkpoint = await dumped(execution)
    again = await restored(sandbox, checkpoint)
    equal("the call after restore", await next_call(again), call)
    equal("pending after restore", (await next_waiting(again)).pending, (call,))
    await again.provide_result(2, call_id=call.call_id)
    result = await next_result(again)
    equal("output and stdout", [result.output, result.stdout], [42, "before\nafter\n"])


@check("an execution dumped at several calls is restored at all of them, in order", needs=("import asyncio",))
async def check_several_pending(sandbox: CodeSandbox) -> None:
    async with started(sandbox, GATHER, [LOOKUP]) as execution:
        calls = await next_calls(execution, 4)
        checkpoint = await dumped(execution)
    again = await restored(sandbox, checkpoint)
    equal("the calls after restore", await next_calls(again, 4), calls)
    equal("pending after restore", (await next_waiting(again)).pending, tuple(calls))
    for call in reversed(calls):
        await again.provide_result(call.args[0] * 10, call_id=call.call_id)
    equal("the output", (await next_result(again)).output, [0, 10, 20, 30])


@check("answers given before the dump are kept in it", needs=("import asyncio",))
async def check_partly_answered(sandbox: CodeSandbox) -> None:
    async with started(sandbox, GATHER, [LOOKUP]) as execution:
        calls = await next_calls(execution, 4)
        for call in (calls[3], calls[1]):
            await execution.provide_result("early", call_id=call.call_id)
        checkpoint = await dumped(execution)
    again = await restored(sandbox, checkpoint)
    equal("the calls after restore", await next_calls(again, 2), [calls[0], calls[2]])
    for call in (calls[0], calls[2]):
        await again.provide_result("late", call_id=call.call_id)
    equal("the output", (await next_result(again)).output, ["late", "early", "late", "early"])


@check("a sync call among parallel async ones is dumped and restored with them", needs=("import asyncio",))
async def check_sync_among_async(sandbox: CodeSandbox) -> None:
    code = """
        import asyncio
        async def by_sync():
            return ping("sync")
        await asyncio.gather(lookup("first"), lookup("second"), by_sync())
    """
    async with started(sandbox, code, [LOOKUP, "ping"]) as execution:
        calls = await next_calls(execution, 3)
        await execution.provide_result("early", call_id=calls[0].call_id)
        checkpoint = await dumped(execution)
    again = await restored(sandbox, checkpoint)
    equal("the calls after restore", await next_calls(again, 2), calls[1:])
    for call in calls[1:]:
        await again.provide_result("late", call_id=call.call_id)
    equal("the output", (await finish(again)).output, ["early", "late", "late"])


@check("the execution that was dumped stays usable")
async def check_original_usable(sandbox: CodeSandbox) -> None:
    async with started(sandbox, ONE, ["ask"]) as execution:
        await next_call(execution)
        await dumped(execution)
        await execution.provide_result(2)
        equal("the output", (await next_result(execution)).output, 42)


@check("a checkpoint can be restored twice; who may resume it is for the journal to say")
async def check_restored_twice(sandbox: CodeSandbox) -> None:
    checkpoint = await checkpoint_of_one(sandbox)
    outputs: list[object] = []
    for answer in (1, 2):
        again = await restored(sandbox, checkpoint)
        await next_call(again)
        await again.provide_result(answer)
        outputs.append((await next_result(again)).output)
    equal("the outputs", outputs, [41, 42])


@check("a restored execution can be dumped again, and makes new calls with new ids")
async def check_dumped_again(sandbox: CodeSandbox) -> None:
    code = "total = 0\nfor i in range(4):\n    total += ask(i)\ntotal"
    seen: list[tuple[str, int]] = []
    async with started(sandbox, code, ["ask"]) as execution:
        call = await next_call(execution)
        checkpoint = await dumped(execution)
    while True:
        again = await restored(sandbox, checkpoint)
        call = await next_call(again)
        seen.append((call.call_id, call.args[0]))
        await again.provide_result(10)
        if len(seen) == 4:
            break
        await next_call(again)
        checkpoint = await dumped(again)
        await killed(again)
    equal("the output", (await next_result(again)).output, 40)
    equal("the arguments seen", [n for _, n in seen], [0, 1, 2, 3])
    equal("different ids", len({i for i, _ in seen}), 4)


@check("an error given to a restored call is raised at it")
async def check_error_after_restore(sandbox: CodeSandbox) -> None:
    again = await restored(sandbox, await checkpoint_of_one(sandbox))
    await next_call(again)
    await again.provide_error(ValueError("refused after all"))
    try:
        fail(f"expected CodeRuntimeError, got {shown(await again.next())}")
    except CodeRuntimeError as e:
        contains("the error", str(e), "ValueError", "refused after all", "line 3")
        equal("error.stdout", e.stdout, "before\n")


@check("on_output of restore() sees what is printed from there on")
async def check_output_after_restore(sandbox: CodeSandbox) -> None:
    checkpoint = await checkpoint_of_one(sandbox)
    heard = Heard()
    again = await sandbox.restore(checkpoint, on_output=heard)
    if again is None:
        fail("restore() gave None for a checkpoint of its own")
    await next_call(again)
    await again.provide_result(2)
    await next_result(again)
    equal("streamed", heard.of("stdout"), "after\n")


@check("limits still hold after restore")
async def check_limits_after_restore(sandbox: CodeSandbox) -> None:
    code = "ask()\nwhile True:\n    pass"
    async with started(sandbox, code, ["ask"], limits=Limits(wall_seconds=0.5)) as execution:
        await next_call(execution)
        checkpoint = await dumped(execution)
    again = await restored(sandbox, checkpoint)
    await next_call(again)
    await again.provide_result(None)
    with raises(CodeTimeoutError, "an endless loop after restore"):
        await again.next()


@check("dump() is a RuntimeError before the code waits and after it ended")
async def check_not_waiting(sandbox: CodeSandbox) -> None:
    await checkpoint_of_one(sandbox)
    async with started(sandbox, "1") as execution:
        with raises(RuntimeError, "dump() before the first next()"):
            execution.dump()
        await next_result(execution)
        with raises(RuntimeError, "dump() after the end"):
            execution.dump()


@check("a checkpoint with any byte altered, cut off or added is refused: restore() gives None", seconds=60)
async def check_damaged(sandbox: CodeSandbox) -> None:
    checkpoint = await checkpoint_of_one(sandbox)
    size = len(checkpoint)
    damaged = [checkpoint[:n] for n in {1, size // 3, size // 2, size - 1}] + [checkpoint + b"\0", b"\0" + checkpoint]
    for at in {0, 1, size // 5, size // 3, size // 2, 2 * size // 3, size - 2, size - 1}:
        damaged.append(checkpoint[:at] + bytes([checkpoint[at] ^ 1]) + checkpoint[at + 1 :])
    for number, bad in enumerate(damaged):
        if await sandbox.restore(bad) is not None:
            fail(f"a damaged checkpoint (number {number}) was restored")
    await killed(await restored(sandbox, checkpoint))


@check("bytes that are no checkpoint give None from restore() and restore_session(), on every backend")
async def check_foreign(sandbox: CodeSandbox) -> None:
    for junk in JUNK:
        equal(f"restore({junk[:20]!r})", await sandbox.restore(junk), None)
        async with sandbox.restore_session(junk) as session:
            equal(f"restore_session({junk[:20]!r})", session, None)


@check("a session dumped while idle is restored with its state", needs=("stateful",))
async def check_session(sandbox: CodeSandbox) -> None:
    async with sandbox.session() as session:
        await run(session, "xs = [1, 2]\ndef total():\n    return sum(xs)")
        checkpoint = await session.dump()
        if checkpoint is None:
            raise NotOffered("CodeSession.dump() gives None: this backend does not store sessions")
        await run(session, "xs.append(100)")
    async with sandbox.restore_session(checkpoint) as again:
        if again is None:
            fail("restore_session() gave None for a session of its own")
        equal("the output", (await run(again, "xs.append(3)\ntotal()")).output, 6)
    async with sandbox.restore_session(checkpoint[:-1]) as cut:
        equal("restore_session() of cut bytes", cut, None)


@check("checkpoints of executions and of sessions are not taken for each other", needs=("stateful",))
async def check_kinds_apart(sandbox: CodeSandbox) -> None:
    async with sandbox.restore_session(await checkpoint_of_one(sandbox)) as session:
        equal("restore_session() of an execution's checkpoint", session, None)
