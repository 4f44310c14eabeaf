"""Limits other than time: each strikes, names itself, and harms nothing but its own execution."""

from __future__ import annotations

import re
from typing import Any

from hatchway.core.calls import FunctionCall, Waiting
from hatchway.core.errors import CodeExecutionError, CodeLimitError, ValueNotPortable
from hatchway.core.limits import MIB, Limits
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeSandbox
from hatchway.testing.conformance.checks import FULL_LIBRARY, NotOffered, check
from hatchway.testing.conformance.drive import LOOKUP, failure, next_call, next_result, run, started, still_works
from hatchway.testing.conformance.expect import contains, equal, fail, raises, shown

MEMORY = Limits(memory_bytes=200 * MIB, wall_seconds=15)


async def _over(sandbox: CodeSandbox, limit: str, code: str, limits: Limits) -> CodeLimitError:
    error = await failure(sandbox, CodeLimitError, code, limits=limits)
    equal("error.limit", error.limit, limit)
    return error


@check("memory that grows past the limit is CodeLimitError for memory_bytes, with stdout kept")
async def check_memory_grown(sandbox: CodeSandbox) -> None:
    code = "print('before')\nblocks = []\nfor i in range(2000):\n    blocks.append(str(i) * 1_000_000)"
    error = await _over(sandbox, "memory_bytes", code, MEMORY)
    equal("error.stdout", error.stdout, "before\n")
    await still_works(sandbox)


@check("one huge allocation is CodeLimitError for memory_bytes")
async def check_memory_at_once(sandbox: CodeSandbox) -> None:
    for code in ("len('x' * 10**10)", "len([0] * 10**9)"):
        await _over(sandbox, "memory_bytes", code, MEMORY)


@check("memory within the limit is granted")
async def check_memory_granted(sandbox: CodeSandbox) -> None:
    result = await run(sandbox, "blocks = [str(i) * 1_000_000 for i in range(10, 60)]\nlen(blocks)")
    equal("the output", result.output, 50)


@check("memory taken by descendants counts: CodeLimitError for memory_bytes, or they die", needs=(FULL_LIBRARY,))
async def check_memory_of_descendants(sandbox: CodeSandbox) -> None:
    code = """
        import os, time
        def child():
            block = b"x" * (100 * 1024 * 1024)
            time.sleep(10)
            os._exit(0)
        try:
            children = [os.fork() or child() for _ in range(4)]
            told = sum(os.waitpid(child, 0)[1] != 0 for child in children)
        except OSError as e:
            told = str(e)
        told
    """
    try:
        died = (await run(sandbox, code, limits=MEMORY)).output
    except CodeLimitError as e:
        equal("error.limit", e.limit, "memory_bytes")
    else:
        if isinstance(died, str):
            raise NotOffered(f"the code cannot fork here: {died}")
        if died < 2:
            fail(f"four children took 400 MiB under memory_bytes=200 MiB, and {died} of them died of it")
    await still_works(sandbox)


@check("calls past Limits.calls are refused by an error that names the limit")
async def check_calls(sandbox: CodeSandbox) -> None:
    made: list[int] = []
    code = "for i in range(10):\n    ping(i)"
    error = await failure(sandbox, CodeExecutionError, code, {"ping": made.append}, limits=Limits(calls=5))
    equal("calls that were handed out", made, [0, 1, 2, 3, 4])
    contains("the error", str(error), "calls")


@check("as many calls as Limits.calls says are made")
async def check_calls_granted(sandbox: CodeSandbox) -> None:
    made: list[int] = []
    await run(sandbox, "for i in range(5):\n    ping(i)", {"ping": made.append}, limits=Limits(calls=5))
    equal("calls that were handed out", made, [0, 1, 2, 3, 4])


@check("more parallel calls than Limits.pending_calls is an error that names the limit", needs=("import asyncio",))
async def check_pending_calls(sandbox: CodeSandbox) -> None:
    code = "import asyncio\nawait asyncio.gather(*[lookup(i) for i in range(20)])"
    pending: list[FunctionCall] = []
    try:
        async with started(sandbox, code, [LOOKUP], limits=Limits(pending_calls=5)) as execution:
            while not isinstance(came := await execution.next(), ExecutionResult):
                if isinstance(came, FunctionCall):
                    pending.append(came)
                    continue
                equal("pending", came.pending, tuple(pending))
                if not pending:
                    fail("next() says Waiting, and every call is answered")
                for call in pending:
                    await execution.provide_result(call.args[0], call_id=call.call_id)
                pending.clear()
            fail(f"twenty calls at a time passed: {shown(came.output)}")
    except CodeExecutionError as e:
        contains("the error", str(e), "pending_calls")
    if len(pending) > 5:
        fail(f"{len(pending)} calls were unanswered at a time")


@check("as many parallel calls as Limits.pending_calls says are handed out", needs=("import asyncio",))
async def check_pending_calls_granted(sandbox: CodeSandbox) -> None:
    code = "import asyncio\nawait asyncio.gather(*[lookup(i) for i in range(5)])"
    async with started(sandbox, code, [LOOKUP], limits=Limits(pending_calls=5)) as execution:
        pending: list[FunctionCall] = []
        while isinstance(came := await execution.next(), FunctionCall):
            pending.append(came)
        if not isinstance(came, Waiting) or len(pending) != 5:
            fail(f"expected five calls and Waiting, got {len(pending)} and {shown(came)}")


@check("an argument past Limits.value_bytes is an error that names the limit, and no call")
async def check_large_argument(sandbox: CodeSandbox) -> None:
    made: list[Any] = []
    limits = Limits(value_bytes=100_000)
    error = await failure(sandbox, CodeExecutionError, "send('x' * 200_000)", {"send": made.append}, limits=limits)
    contains("the error", str(error), "value_bytes")
    equal("calls that were handed out", len(made), 0)


@check("an output past Limits.value_bytes is an error that names the limit")
async def check_large_output(sandbox: CodeSandbox) -> None:
    error = await failure(sandbox, CodeExecutionError, "'x' * 200_000", limits=Limits(value_bytes=100_000))
    contains("the error", str(error), "value_bytes")


@check("a small value that is large on the wire is held to Limits.value_bytes, as argument and as output")
async def check_expanding_value(sandbox: CodeSandbox) -> None:
    doubled = "x = [1, 2, 3]\nfor _ in range(15):\n    x = [x, x]\n"
    made: list[Any] = []
    for end in ("x", "send(x)"):
        code, limits = doubled + end, Limits(value_bytes=100_000)
        error = await failure(sandbox, CodeExecutionError, code, {"send": made.append}, limits=limits)
        contains(f"the error of {end}", str(error), "value_bytes")
    equal("calls that were handed out", len(made), 0)


@check("a result past Limits.value_bytes is refused; the call stays pending")
async def check_large_result(sandbox: CodeSandbox) -> None:
    async with started(sandbox, "len(fetch())", ["fetch"], limits=Limits(value_bytes=100_000)) as execution:
        await next_call(execution)
        with raises(ValueNotPortable, "a result of 200,000 bytes", "value_bytes"):
            await execution.provide_result("x" * 200_000)
        await execution.provide_result("x" * 50_000)
        equal("the output", (await next_result(execution)).output, 50_000)


@check("ten megabytes cross in one result and one argument")
async def check_ten_megabytes(sandbox: CodeSandbox) -> None:
    sent: list[str] = []
    await run(sandbox, "send(fetch() + 'y')", {"fetch": lambda: "x" * 10_000_000, "send": sent.append})
    equal("the argument's length", [len(text) for text in sent], [10_000_001])


@check("threads and processes past Limits.processes cannot be started", needs=(FULL_LIBRARY,))
async def check_processes(sandbox: CodeSandbox) -> None:
    code = """
        import threading, time
        started = 0
        print(started)
        for _ in range(100):
            threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
            started += 1
            print(started)
        started
    """
    try:
        result = await run(sandbox, code, limits=Limits(processes=16))
        fail(f"{shown(result.output)} threads were started under processes=16")
    except CodeExecutionError as e:
        counted = [int(n) for n in re.findall(r"\d+", e.stdout)]
        if max(counted, default=0) > 40:
            fail(f"{max(counted)} threads were started under processes=16")
    await still_works(sandbox)


@check("files open past Limits.open_files cannot be opened", needs=(FULL_LIBRARY,))
async def check_open_files(sandbox: CodeSandbox) -> None:
    code = "import os\nheld = [os.dup(1) for _ in range(200)]\nlen(held)"
    contains("the error", str(await _over(sandbox, "open_files", code, Limits(open_files=64))), "OSError")


@check("a file past Limits.file_bytes cannot be written", needs=(FULL_LIBRARY, "filesystem"))
async def check_file_bytes(sandbox: CodeSandbox) -> None:
    code = """
        import os, tempfile
        with tempfile.TemporaryFile() as f:
            for _ in range(40):
                f.write(b"x" * 100_000)
            f.flush()
            size = os.fstat(f.fileno()).st_size
        size
    """
    await _over(sandbox, "file_bytes", code, Limits(file_bytes=1_000_000))
    equal("a smaller file", (await run(sandbox, code)).output, 4_000_000)
