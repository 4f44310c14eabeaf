"""The conformance suite under pytest: one test per check, in one line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from hatchway.testing.conformance import Check
from hatchway.testing.conformance.runner import Factory, run_check, select


def pytest_checks(factory: Factory, only: str | Iterable[str] | None = None) -> Callable[[Check], None]:
    """A test function for a module of yours: `test_conformance = pytest_checks(MySandbox)`.

    Args:
        factory: Makes a sandbox; each check gets one of its own, in an event loop of its own. A `SandboxUnavailable`
            it raises fails the test: skip the module yourself where the sandbox may be absent.
        only: As for `run_conformance`.
    """
    import pytest

    @pytest.mark.parametrize("check", [pytest.param(c, id=c.id) for c in select(only)])
    def test_conformance(check: Check) -> None:
        outcome = asyncio.run(run_check(check, factory))
        if outcome.state == "skipped":
            pytest.skip(outcome.message)
        if outcome.state == "failed":
            pytest.fail(f"{check.description}\n{outcome.message}", pytrace=False)

    return test_conformance
