"""Hostile code: it can end its own execution, never another one, and never the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hatchway.core.errors import CodeRuntimeError, HatchwayError
from hatchway.core.limits import Limits
from hatchway.core.sandbox import CodeSandbox
from hatchway.testing.conformance.checks import FULL_LIBRARY, check
from hatchway.testing.conformance.drive import failure, next_call, ping, run, started, still_works
from hatchway.testing.conformance.expect import equal

FULL = (FULL_LIBRARY,)
ONE_SECOND = Limits(wall_seconds=1)
WRITE_EVERYWHERE = """
    import os
    for fd in range(3, 64):
        try:
            os.set_blocking(fd, False)
            os.write(fd, line)
        except OSError:
            pass
"""


async def _ends(sandbox: CodeSandbox, code: str, inputs: Mapping[str, Any] | None = None) -> None:
    """The execution ends in time, however it likes, and the next one works."""
    try:
        await run(sandbox, code, {"ping": ping}, inputs=inputs, limits=ONE_SECOND)
    except HatchwayError:
        pass
    await still_works(sandbox)


@check("the death of the interpreter is CodeRuntimeError with stdout kept, and the next execution works", needs=FULL)
async def check_deaths(sandbox: CodeSandbox) -> None:
    deaths = (
        "os._exit(0)",
        "os._exit(7)",
        "os.kill(os.getpid(), 9)",
        "os.abort()",
        "ctypes.string_at(0)",
        "[os._exit(1) for _ in [ping()]]",
    )
    for death in deaths:
        code = f"import os, ctypes\nprint('before', flush=True)\n{death}\nprint('after')"
        error = await failure(sandbox, CodeRuntimeError, code, {"ping": ping})
        equal(f"error.stdout of {death}", error.stdout, "before\n")
    await still_works(sandbox)


@check("death in one of several executions leaves the others alone", needs=FULL)
async def check_death_among_others(sandbox: CodeSandbox) -> None:
    async with started(sandbox, "ping() + 1", ["ping"]) as execution:
        await next_call(execution)
        await failure(sandbox, CodeRuntimeError, "import os\nos.kill(os.getpid(), 9)")
        await execution.provide_result(41)
        equal("the neighbour's output", getattr(await execution.next(), "output", None), 42)


@check("closing every file descriptor ends that execution and nothing else", needs=FULL)
async def check_closed_descriptors(sandbox: CodeSandbox) -> None:
    await _ends(sandbox, "import os\nos.closerange(0, 512)\nping()")


@check("garbage on every file descriptor ends that execution at most, and nothing else", needs=FULL)
async def check_garbage(sandbox: CodeSandbox) -> None:
    lines = (b"garbage\n", b'{"type":"function_call"}\n', b"\xff" * 64, b"\x7f\xff\xff\xff", b"[" * 100_000 + b"\n")
    for line in lines:
        await _ends(sandbox, f"{WRITE_EVERYWHERE}    ping()", {"line": line})


@check("forged ends, answers and calls do no more harm than ending that execution", needs=FULL)
async def check_forged_messages(sandbox: CodeSandbox) -> None:
    forged = (
        b'{"type":"execution_complete","output":"forged"}\n' * 3,
        b'{"type":"idle","answers":0}\n' * 3,
        b'{"type":"function_call","call_id":"1","function_name":"ping","args":[],"kwargs":{}}\n' * 3,
        b'{"type":"ready"}\n{"type":"result","call_id":"1","value":1}\n',
    )
    for line in forged:
        await _ends(sandbox, f"{WRITE_EVERYWHERE}    while True:\n        pass", {"line": line})


@check("code that breaks its own builtins and modules harms only itself", needs=FULL)
async def check_broken_builtins(sandbox: CodeSandbox) -> None:
    for code in (
        "import builtins\nfor name in list(vars(builtins)):\n    setattr(builtins, name, None)\nping()",
        "import sys\nsys.modules.clear()\nping()",
        "import json\njson.dumps = json.loads = json.JSONEncoder = None\nping()",
        "import sys\nsys.stdout = sys.stderr = sys.stdin = None\nprint('x')\nping()",
        "import gc\nfor o in gc.get_objects():\n    if isinstance(o, dict) and 'ping' in o:\n        o.clear()\nping()",
        "import sys\nsys.setrecursionlimit(5)\nping()",
        "import os\nos.chdir('/')\nos.environ.clear()\nping()",
        "import signal\nsignal.raise_signal(signal.SIGSTOP)",
    ):
        await _ends(sandbox, code)
