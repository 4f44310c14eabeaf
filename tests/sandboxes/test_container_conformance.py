"""The container sandbox against the whole conformance suite, in a real engine."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from hatchway.sandboxes.container import ContainerSandbox
from hatchway.testing import CHECKS, Check, run_check

PATIENCE = 8
"""A check that takes forty executions starts forty containers."""
IN_A_HURRY = {"calls", "waiting", "secrets"}
"""What is tried also when slow tests are left out."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "check",
    [pytest.param(c, id=c.id, marks=[] if c.topic in IN_A_HURRY else [pytest.mark.slow]) for c in CHECKS],
)
def test_conformance(docker_engine: str, check: Check) -> None:
    check = replace(check, seconds=PATIENCE * check.seconds)
    outcome = asyncio.run(run_check(check, partial(ContainerSandbox, spares=0)))
    if outcome.state == "skipped":
        pytest.skip(outcome.message)
    assert outcome.state == "passed", f"{check.description}\n{outcome.message}"
