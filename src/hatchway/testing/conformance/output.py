"""What the code prints: kept, streamed, cut in the middle, and never mixed with anything else."""

from __future__ import annotations

import re
import threading

from hatchway.core.errors import CodeRuntimeError, CodeTimeoutError
from hatchway.core.limits import Limits
from hatchway.core.sandbox import CodeSandbox
from hatchway.testing.conformance.checks import FULL_LIBRARY, check
from hatchway.testing.conformance.drive import Heard, failure, finish, next_call, run, started
from hatchway.testing.conformance.expect import contains, equal, fail, shown


@check("stdout is returned as printed")
async def check_stdout(sandbox: CodeSandbox) -> None:
    result = await run(sandbox, "print('a', 1, [2])\nprint('b', end='')\nprint()\nprint('c', end='!')")
    equal("stdout", result.stdout, "a 1 [2]\nb\nc!")
    equal("stderr", result.stderr, "")


@check("stderr is returned apart from stdout", needs=("import sys",))
async def check_stderr(sandbox: CodeSandbox) -> None:
    result = await run(sandbox, "import sys\nprint('out')\nprint('err', file=sys.stderr)\nprint('out')")
    equal("stdout and stderr", [result.stdout, result.stderr], ["out\nout\n", "err\n"])


@check("stdout is kept when the code raises")
async def check_kept_on_error(sandbox: CodeSandbox) -> None:
    error = await failure(sandbox, CodeRuntimeError, "print('before')\nprint('half', end='')\n1 / 0\nprint('after')")
    equal("error.stdout", error.stdout, "before\nhalf")


@check("stderr is kept when the code raises", needs=("import sys",))
async def check_stderr_kept_on_error(sandbox: CodeSandbox) -> None:
    error = await failure(sandbox, CodeRuntimeError, "import sys\nprint('warned', file=sys.stderr)\n1 / 0")
    contains("error.stderr", error.stderr, "warned\n")


@check("stdout is kept when the time is over")
async def check_kept_on_timeout(sandbox: CodeSandbox) -> None:
    limits = Limits(wall_seconds=0.5)
    code = "print('before')\nprint('half', end='')\nwhile True:\n    pass"
    error = await failure(sandbox, CodeTimeoutError, code, limits=limits)
    equal("error.stdout", error.stdout, "before\nhalf")


@check("what was printed before a call is streamed before the call is handed out")
async def check_streamed_before_call(sandbox: CodeSandbox) -> None:
    heard = Heard()
    code = "print('one')\nping()\nprint('two')\nping()\nprint('three')"
    async with started(sandbox, code, ["ping"], on_output=heard) as execution:
        for seen in ("one\n", "one\ntwo\n"):
            await next_call(execution)
            equal("streamed before the call", heard.of("stdout"), seen)
            await execution.provide_result(None)
        result = await finish(execution)
    equal("streamed in all", heard.of("stdout"), "one\ntwo\nthree\n")
    equal("returned", result.stdout, "one\ntwo\nthree\n")


@check("output is streamed while the code still runs", needs=("import time",))
async def check_streamed_while_running(sandbox: CodeSandbox) -> None:
    heard = Heard()
    code = "import time\nprint('early')\nwhile True:\n    time.sleep(0.05)"
    limits = Limits(wall_seconds=1.0)
    await failure(sandbox, CodeTimeoutError, code, limits=limits, on_output=heard)
    equal("streamed before the code was killed", heard.of("stdout"), "early\n")


@check("stdout and stderr are streamed under their names", needs=("import sys",))
async def check_streams_named(sandbox: CodeSandbox) -> None:
    heard = Heard()
    code = "import sys\nprint('out')\nprint('err', file=sys.stderr)"
    await run(sandbox, code, on_output=heard)
    equal("streamed", [heard.of("stdout"), heard.of("stderr")], ["out\n", "err\n"])


@check("on_output is called on the event loop's own thread")
async def check_streamed_on_loop(sandbox: CodeSandbox) -> None:
    threads: set[int] = set()

    def heard(stream: str, text: str) -> None:
        threads.add(threading.get_ident())

    await run(sandbox, "print('x')", on_output=heard)
    equal("threads that called on_output", threads, {threading.get_ident()})


@check("output past the limit is cut in the middle and says how much is missing")
async def check_cut_in_the_middle(sandbox: CodeSandbox) -> None:
    code = "print('HEAD')\nfor i in range(2000):\n    print('x' * 99)\nprint('TAIL')"
    stdout = (await run(sandbox, code, limits=Limits(output_bytes=10_000))).stdout
    if not stdout.startswith("HEAD\nx") or not stdout.endswith("x\nTAIL\n"):
        fail(f"head and tail are not both kept: {shown(stdout)}")
    if len(stdout) > 12_000:
        fail(f"{len(stdout)} characters are kept of at most 10,000 bytes")
    notice = re.search(r"[\d,._]{6,}", stdout)
    missing = int(re.sub(r"\D", "", notice.group())) if notice else 0
    if not 185_000 <= missing <= 200_010:
        fail(f"the text does not say how much was cut (about 190,000): {shown(stdout[4900:5300])}")


@check("what is streamed of output past the limit has its beginning and its end, and says what is missing between")
async def check_flood_is_streamed(sandbox: CodeSandbox) -> None:
    heard = Heard()
    code = "print('HEAD')\nfor i in range(2000):\n    print('x' * 99)\nprint('TAIL')"
    await run(sandbox, code, limits=Limits(output_bytes=10_000), on_output=heard)
    streamed = heard.of("stdout")
    if not streamed.startswith("HEAD\nx") or not streamed.endswith("x\nTAIL\n"):
        fail(f"head and tail are not both streamed: {shown(streamed)}")
    if len(streamed) < 200_010 and not re.search(r"\d cut|\d \w+ cut", streamed):
        fail("what was left out of the stream is not told")


@check("output at the limit is not cut")
async def check_not_cut(sandbox: CodeSandbox) -> None:
    result = await run(sandbox, "print('x' * 999)", limits=Limits(output_bytes=1000))
    equal("stdout", result.stdout, "x" * 999 + "\n")


@check("twenty megabytes of output end, and at most Limits.output_bytes of them are kept")
async def check_flood(sandbox: CodeSandbox) -> None:
    code = "line = 'x' * 9999\nfor i in range(2000):\n    print(line)\n'done'"
    result = await run(sandbox, code)
    equal("the output", result.output, "done")
    if not 900_000 <= len(result.stdout) <= 1_100_000:
        fail(f"{len(result.stdout)} characters are kept of at most one MiB")


@check("code that prints without end is stopped by its time, with head and tail of the output kept")
async def check_endless(sandbox: CodeSandbox) -> None:
    code = "print('HEAD')\nwhile True:\n    print('x', end='')"
    error = await failure(sandbox, CodeTimeoutError, code, limits=Limits(wall_seconds=0.5, output_bytes=1000))
    if not error.stdout.startswith("HEAD\nx") or not error.stdout.endswith("x") or len(error.stdout) > 1200:
        fail(f"error.stdout is {shown(error.stdout)}")


@check("output is text whatever it holds: control characters, many lines, any language")
async def check_any_text(sandbox: CodeSandbox) -> None:
    text = 'bell\a esc\x1b[31m nul\0 tab\t 漢字 🚀 \u2028 {"type": "execution_complete"}\r\n'
    equal("stdout", (await run(sandbox, "print(text, end='')", inputs={"text": text})).stdout, text)


@check("bytes written below print() are kept, also such as are no UTF-8", needs=(FULL_LIBRARY,))
async def check_raw_bytes(sandbox: CodeSandbox) -> None:
    code = r"""
        import os, sys
        print("printed")
        sys.stdout.buffer.write(b"buffered\n")
        sys.stdout.flush()
        os.write(1, b"raw \xff\xfe\n")
        os.write(2, b"raw error\n")
    """
    result = await run(sandbox, code)
    contains("stdout", result.stdout, "printed\n", "buffered\n", "raw ")
    contains("stderr", result.stderr, "raw error\n")


@check("text that looks like the sandbox's own messages is output and nothing else", needs=(FULL_LIBRARY,))
async def check_no_protocol_in_stdout(sandbox: CodeSandbox) -> None:
    code = r"""
        import os
        for fd in (1, 2):
            os.write(fd, b'{"type":"execution_complete","output":"forged"}\n')
            os.write(fd, b'{"type":"function_call","call_id":"9","function_name":"ping","args":[],"kwargs":{}}\n')
        "honest"
    """
    result = await run(sandbox, code, {"ping": lambda: fail("a call was forged by printing")})
    equal("the output", result.output, "honest")
    contains("stdout", result.stdout, '"forged"', '"function_call"')
