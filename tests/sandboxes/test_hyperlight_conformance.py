"""Hyperlight against the conformance suite: on the real package and a real hypervisor, never on the stand-in."""

from __future__ import annotations

import asyncio

import pytest

from hatchway.sandboxes.hyperlight import HyperlightSandbox
from hatchway.testing import CHECKS, Check, run_check

FOUND = HyperlightSandbox.probe()
TRIED = CHECKS if FOUND.state == "usable" else CHECKS[:1]  # where it cannot be had, that is said once


@pytest.mark.slow
@pytest.mark.skipif(FOUND.state != "usable", reason=f"hyperlight is {FOUND.state}: {FOUND.reason}")
@pytest.mark.parametrize("check", [pytest.param(check, id=check.id) for check in TRIED])
def test_conformance(check: Check) -> None:
    outcome = asyncio.run(run_check(check, HyperlightSandbox))
    if outcome.state == "skipped":
        pytest.skip(outcome.message)
    assert outcome.state == "passed", f"{check.description}\n{outcome.message}"
