"""Type checks in kept workers: the first check against a set of stubs takes tens of milliseconds, later ones one.

The checker of Monty runs before the code does. Given no time at all, the code stops before its first step, so a check
that passes ends in that timeout, and nothing of it stays for the next one.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable
from typing import Protocol
from weakref import WeakKeyDictionary

import pydantic_monty as pm

from hatchway.core.errors import CodeExecutionError, CodeLimitError, CodeSyntaxError, CodeTypeError, SandboxCrashed
from hatchway.core.limits import MIB, Limits
from hatchway.sandboxes.monty import failures
from hatchway.sandboxes.monty.lease import Lease

CHECK_SECONDS = 10.0
"""Seconds a type check may take; its limit on running code is zero, so the pool's grace is all it has."""
KEPT = 4
"""Workers kept for checks, each for one set of stubs."""
AT_ONCE = 4
"""Checks that run at one time; more of them wait."""
CHECKS_PER_WORKER = 1000
"""The checker keeps a little of each code it saw."""
_LIMITS: pm.ResourceLimits = {"max_turn_duration_secs": 0.0, "max_memory": 1024 * MIB, "max_suspensions": 10**9}
_NO_TIME = "turn time limit exceeded"


class LeaseWorker(Protocol):
    """How a worker is had from the pool."""

    def __call__(self, limits: pm.ResourceLimits, *, stubs: str | None = None) -> Awaitable[Lease]: ...


class TypeChecks:
    """The kept check workers of one pool.

    Args:
        lease: Gives a worker that checks types.
    """

    def __init__(self, lease: LeaseWorker) -> None:
        self._lease = lease
        self._idle: OrderedDict[str, Lease] = OrderedDict()
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    async def check(self, code: str, stubs: str) -> None:
        """Check the code against the stubs.

        Raises:
            CodeTypeError: A wrong argument, an undefined name, an unresolved import; or the check took too long.
            CodeSyntaxError: The code does not parse.
        """
        turns = self._turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE))
        async with turns:
            try:
                found = await self._found(code, stubs)
            except SandboxCrashed:  # perhaps its worker had died while it was kept: a fresh one decides
                found = await self._found(code, stubs)
        if found is not None:
            raise found

    async def _found(self, code: str, stubs: str) -> CodeExecutionError | None:
        lease = self._idle.pop(stubs, None) or await self._lease(_LIMITS, stubs=stubs)
        try:
            found = await _found(lease, code)
        except BaseException:
            await asyncio.shield(lease.dropped())
            raise
        for unneeded in self._kept(stubs, lease):
            await unneeded.given_back()
        return found

    def _kept(self, stubs: str, lease: Lease) -> list[Lease]:
        """Keep the worker for the next check; those that must go for it."""
        if lease.is_over or lease.feeds >= CHECKS_PER_WORKER:
            return [lease]
        twin = self._idle.pop(stubs, None)
        self._idle[stubs] = lease
        if twin is not None:
            return [twin]
        return [self._idle.popitem(last=False)[1]] if len(self._idle) > KEPT else []


async def _found(lease: Lease, code: str) -> CodeExecutionError | None:
    """What is wrong with the code; None when nothing is."""
    feed = lease.feeds
    lease.feeds += 1
    try:
        await lease.pilot.flown(_checked, lease.session, code)
        return None
    except pm.MontyTypingError as e:
        text = e.display().strip()
        return CodeSyntaxError(text) if text.startswith("error[invalid-syntax]") else CodeTypeError(text)
    except pm.MontyCrashedError as e:
        lease.is_dead = True
        if not e.timed_out:
            raise SandboxCrashed(f"the type checker died: {e}", hint="run the action again") from e
        return CodeTypeError(f"the type check took longer than {CHECK_SECONDS:g} s", hint="write less code at a time")
    except (pm.MontyRuntimeError, pm.MontySyntaxError) as e:
        if _NO_TIME in str(e):
            return None
        ended = failures.ended_in(e, Limits(), feed=feed, has_run=False)
        if isinstance(ended, CodeLimitError):
            lease.kill()
            return CodeTypeError(f"the type check failed: {ended.message}", hint="write less code at a time")
        return CodeSyntaxError(ended.message, hint=ended.hint)


def _checked(session: pm.MontySession, code: str) -> None:
    """In the pilot's thread."""
    stop = session.feed_start(code, print_callback=_ignore)
    while isinstance(stop, pm.FunctionSnapshot):  # it asks for stubs of a module it does not have
        stop = stop.resume_not_handled()


def _ignore(_stream: str, _text: str) -> None:
    """The code prints nothing, as it does not run."""
