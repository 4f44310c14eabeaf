"""Descendants: whatever the code started is dead when the code is."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

from hatchway.core.errors import CodeRuntimeError, CodeTimeoutError
from hatchway.core.limits import Limits
from hatchway.core.sandbox import CodeExecution, CodeSandbox
from hatchway.testing.conformance.checks import FULL_LIBRARY, NotOffered, check
from hatchway.testing.conformance.drive import next_call, next_result, started
from hatchway.testing.conformance.expect import equal, fail, raises

FULL = (FULL_LIBRARY,)

FORKS = """
    import ctypes, os, time
    ctypes.CDLL(None).prctl(15, mark.encode(), 0, 0, 0)
    end = time.monotonic() + 20
    def spin():
        while time.monotonic() < end:
            time.sleep(0.01)
    try:
        for _ in range(2):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    os.setpgid(0, 0)
                spin()
                os._exit(0)
    except OSError:
        pass
    ping()
"""
"""Names its own process (15 is PR_SET_NAME; children inherit the name), then forks, daemonises and changes groups.

A sandbox that fails leaves these behind: after twenty seconds they end by themselves.
"""
SPINS = f"{FORKS}    spin()\n"


def marked(mark: str) -> list[str]:
    """Processes of this machine that carry the mark as their name; those of inner pid namespaces show as well."""
    found: list[str] = []
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().strip() == mark:
                found.append(comm.parent.name)
        except OSError:
            continue
    return found


async def _seen_alive(execution: CodeExecution, mark: str) -> None:
    await next_call(execution)
    await asyncio.sleep(0.2)
    if not marked(mark):
        raise NotOffered("this machine does not show the processes of the sandbox")


async def _all_dead(mark: str, when: str) -> None:
    left: list[str] = []
    for _ in range(20):  # a killed process may stay for a moment until its parent has seen it
        if not (left := marked(mark)):
            return
        await asyncio.sleep(0.05)
    fail(f"{when}: processes {left} are still there")


def _fresh_mark() -> str:
    return f"hw-{secrets.token_hex(4)}"


@check("forked, daemonised and regrouped processes are dead when cancel() returns", needs=FULL)
async def check_cancelled(sandbox: CodeSandbox) -> None:
    mark = _fresh_mark()
    async with started(sandbox, SPINS, ["ping"], inputs={"mark": mark}) as execution:
        await _seen_alive(execution, mark)
        await execution.cancel()
        await _all_dead(mark, "after cancel()")


@check("forked, daemonised and regrouped processes are dead after a timeout", needs=FULL)
async def check_timed_out(sandbox: CodeSandbox) -> None:
    mark = _fresh_mark()
    limits = Limits(wall_seconds=1.0)
    async with started(sandbox, SPINS, ["ping"], inputs={"mark": mark}, limits=limits) as execution:
        await _seen_alive(execution, mark)
        await execution.provide_result(None)
        with raises(CodeTimeoutError, "code that spins after forking"):
            await execution.next()
        await _all_dead(mark, "after a timeout")


@check("forked, daemonised and regrouped processes are dead when the code has ended", needs=FULL)
async def check_ended(sandbox: CodeSandbox) -> None:
    mark = _fresh_mark()
    async with started(sandbox, f"{FORKS}    'ended'", ["ping"], inputs={"mark": mark}) as execution:
        await _seen_alive(execution, mark)
        await execution.provide_result(None)
        equal("the output", (await next_result(execution)).output, "ended")
        await _all_dead(mark, "after the end")


@check("forked, daemonised and regrouped processes are dead when the interpreter has died", needs=FULL)
async def check_died(sandbox: CodeSandbox) -> None:
    mark = _fresh_mark()
    async with started(sandbox, f"{FORKS}    os._exit(3)", ["ping"], inputs={"mark": mark}) as execution:
        await _seen_alive(execution, mark)
        await execution.provide_result(None)
        with raises(CodeRuntimeError, "code whose interpreter died after forking"):
            await execution.next()
        await _all_dead(mark, "after the death of the interpreter")


@check("forked, daemonised and regrouped processes are dead when aclose() returns", needs=FULL, fresh=True)
async def check_closed(sandbox: CodeSandbox) -> None:
    mark = _fresh_mark()
    async with started(sandbox, SPINS, ["ping"], inputs={"mark": mark}) as execution:
        await _seen_alive(execution, mark)
        await sandbox.aclose()
        await _all_dead(mark, "after aclose()")
