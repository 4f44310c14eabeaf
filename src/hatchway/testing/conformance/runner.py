"""Running the checks on a sandbox: one at a time, each with its own time limit, into a report."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from hatchway.core.errors import InvalidSetting
from hatchway.core.sandbox import CodeSandbox
from hatchway.testing.conformance import CHECKS
from hatchway.testing.conformance.checks import Check, NotOffered

State = Literal["passed", "failed", "skipped"]
Factory = Callable[[], CodeSandbox]
GRACE_SECONDS = 5.0
"""How long a check that ran out of time may take to give up, and a sandbox to close."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOutcome:
    """What came of one check."""

    check: Check
    """Which check."""
    state: State
    """Passed, failed, or skipped because the sandbox does not claim what it needs."""
    seconds: float = 0.0
    """How long it took."""
    message: str = ""
    """Why it failed (what was expected, what came) or was skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceReport:
    """What came of all checks, in their order."""

    outcomes: tuple[CheckOutcome, ...]
    """One for each check that was asked for."""

    @property
    def passed(self) -> list[CheckOutcome]:
        """The checks the sandbox passed."""
        return self._of("passed")

    @property
    def failed(self) -> list[CheckOutcome]:
        """The checks the sandbox failed."""
        return self._of("failed")

    @property
    def skipped(self) -> list[CheckOutcome]:
        """The checks about what the sandbox does not claim."""
        return self._of("skipped")

    @property
    def conforms(self) -> bool:
        """Whether something passed and nothing failed."""
        return bool(self.passed) and not self.failed

    def _of(self, state: State) -> list[CheckOutcome]:
        return [outcome for outcome in self.outcomes if outcome.state == state]


async def run_conformance(
    sandbox: CodeSandbox | Factory,
    only: str | Iterable[str] | None = None,
    on_result: Callable[[CheckOutcome], None] | None = None,
) -> ConformanceReport:
    """Try every check on a sandbox.

    Args:
        sandbox: A factory without arguments, such as the class; or an instance, which is left open: checks that
            close their sandbox are then skipped.
        only: Ids, topics or patterns of them (`"values"`, `"limits.*"`); None is every check.
        on_result: Sees each outcome as it comes.

    Raises:
        InvalidSetting: `only` fits no check.
        HatchwayError: The factory's own: the sandbox cannot be made here.
    """
    chosen = select(only)
    outcomes: list[CheckOutcome] = []
    supply = _Supply(sandbox)
    try:
        for check in chosen:
            outcome = await supply.try_check(check)
            outcomes.append(outcome)
            if on_result is not None:
                on_result(outcome)
    finally:
        await supply.close()
    return ConformanceReport(outcomes=tuple(outcomes))


def select(only: str | Iterable[str] | None) -> list[Check]:
    """The checks whose id or topic fits one of the patterns."""
    if only is None:
        return list(CHECKS)
    patterns = [only] if isinstance(only, str) else list(only)
    chosen = [c for c in CHECKS if any(fnmatchcase(c.id, p) or fnmatchcase(c.topic, p) for p in patterns)]
    if not chosen:
        topics = ", ".join(dict.fromkeys(c.topic for c in CHECKS))
        raise InvalidSetting(f"no check fits {', '.join(map(repr, patterns))}", hint=f"topics: {topics}")
    return chosen


async def run_check(check: Check, sandbox: CodeSandbox | Factory) -> CheckOutcome:
    """Try one check: on this instance, which stays open, or on a sandbox made for it and closed afterwards."""
    if isinstance(sandbox, CodeSandbox):
        if check.fresh:
            reason = "it closes its sandbox: give a factory, not an instance"
            return CheckOutcome(check=check, state="skipped", message=reason)
        return await _tried(check, sandbox)
    own = sandbox()
    try:
        return await _tried(check, own)
    finally:
        await _close(own)


async def _tried(check: Check, sandbox: CodeSandbox) -> CheckOutcome:
    if reason := check.unmet(sandbox.constraints):
        return CheckOutcome(check=check, state="skipped", message=reason)
    begun = time.monotonic()
    state, message = await _verdict(check, sandbox)
    return CheckOutcome(check=check, state=state, seconds=time.monotonic() - begun, message=message)


async def _verdict(check: Check, sandbox: CodeSandbox) -> tuple[State, str]:
    task = asyncio.ensure_future(check.function(sandbox))
    try:
        done, _ = await asyncio.wait({task}, timeout=check.seconds)
    finally:
        task.cancel()
    if not done:
        await asyncio.wait({task}, timeout=GRACE_SECONDS)  # not `await task`: a sandbox may swallow the cancellation
        return "failed", f"still running after {check.seconds:g} s"
    match asyncio.CancelledError("by the sandbox") if task.cancelled() else task.exception():
        case None:
            return "passed", ""
        case NotOffered() as reason:
            return "skipped", str(reason)
        case AssertionError() as wrong:
            return "failed", str(wrong)
        case other:
            return "failed", f"{type(other).__name__}: {other}"


class _Supply:
    """The sandbox of a run: the given instance, or one made when needed and made anew after a failure."""

    def __init__(self, source: CodeSandbox | Factory) -> None:
        self._source = source
        self._shared: CodeSandbox | None = None

    async def try_check(self, check: Check) -> CheckOutcome:
        """Try the check on the shared sandbox, or on one of its own where it closes it."""
        if isinstance(self._source, CodeSandbox) or check.fresh:
            return await run_check(check, self._source)
        if self._shared is None:
            self._shared = self._source()
        outcome = await run_check(check, self._shared)
        if outcome.state == "failed":
            await self.close()  # what a failure left behind must not fail the next check
        return outcome

    async def close(self) -> None:
        """Close what was made here; a given instance stays open."""
        if self._shared is not None:
            shared, self._shared = self._shared, None
            await _close(shared)


async def _close(sandbox: CodeSandbox) -> None:
    try:
        async with asyncio.timeout(GRACE_SECONDS):
            await sandbox.aclose()
    except Exception:
        return  # closing has checks of its own
