"""One program from its start to the death of everything that came of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hatchway.core.errors import SandboxCrashed
from hatchway.core.limits import Limits
from hatchway.core.sandbox import OnOutput
from hatchway.sandboxes.guest_process import Death
from hatchway.sandboxes.output_pipes import OutputPipes
from hatchway.sandboxes.process.program import ProgramSupervisor, program_supervisor, release


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramEnd:
    """How a program ended."""

    death: Death
    """Of the program itself."""
    is_timeout: bool
    """Whether its time was over."""
    stdout: str
    """What it printed."""
    stderr: str
    """What it complained about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that is to run."""

    argv: Sequence[str]
    """Its full path, and its arguments."""
    cwd: str
    """Its working directory."""
    env: Mapping[str, str]
    """Its whole environment."""
    stdin: int
    """A descriptor it reads; it stays the caller's."""


async def run_program(
    program: Program, *, limits: Limits, timeout: float | None, on_output: OnOutput | None = None
) -> ProgramEnd:
    """Run a program until it is dead, with all its descendants. A caller that is cancelled kills it.

    Raises:
        SandboxUnavailable: It cannot be started.
        SandboxCrashed: What starts and watches it died.
    """
    deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
    supervisor = await program_supervisor()
    try:
        (stdout, their_stdout), (stderr, their_stderr) = os.pipe(), os.pipe()
        try:
            died = await _started(supervisor, program, (program.stdin, their_stdout, their_stderr), limits)
        except BaseException:
            _close(stdout, stderr)
            raise
        finally:
            _close(their_stdout, their_stderr)
        try:
            output = OutputPipes(stdout, stderr, limit=limits.output_bytes, on_output=on_output)
            output.open()
            return await _watched(supervisor, died, output, deadline)
        finally:
            _close(stdout, stderr)
    finally:
        release(supervisor)


async def _started(
    supervisor: ProgramSupervisor, program: Program, fds: Sequence[int], limits: Limits
) -> asyncio.Future[Death]:
    try:
        return await supervisor.start(program.argv, cwd=program.cwd, env=program.env, fds=fds, limits=limits)
    except OSError as e:
        raise SandboxCrashed("the process that starts programs died", hint="run it again") from e


async def _watched(
    supervisor: ProgramSupervisor, died: asyncio.Future[Death], output: OutputPipes, deadline: float | None
) -> ProgramEnd:
    is_over = False

    def time_over() -> None:
        nonlocal is_over
        is_over = not died.done()
        supervisor.kill()

    timer = None if deadline is None else asyncio.get_running_loop().call_at(deadline, time_over)
    try:
        death = await _to_the_death(supervisor, died)
        output.drain()
    finally:
        if timer is not None:
            timer.cancel()
        stdout, stderr = output.close()
    if death.is_crash:
        raise SandboxCrashed("what started and watched the program died", hint="run it again")
    return ProgramEnd(death=death, is_timeout=is_over, stdout=stdout, stderr=stderr)


async def _to_the_death(supervisor: ProgramSupervisor, died: asyncio.Future[Death]) -> Death:
    try:
        return await asyncio.shield(died)
    except asyncio.CancelledError:
        supervisor.kill()
        while not died.done():  # cancelled again: the folder must not go while something writes into it
            try:
                await asyncio.wait([died])
            except asyncio.CancelledError:
                continue
        died.exception()  # nobody else asks
        raise


def _close(*fds: int) -> None:
    for fd in fds:
        os.close(fd)
