"""Every registered sandbox, over every transport it takes, against the whole conformance suite."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from typing import Any

import pytest

from hatchway.core.sandbox import CodeSandbox
from hatchway.sandboxes.registry import ROWS, availability, make_sandbox
from hatchway.testing import CHECKS, Check, run_check


@cache
def reason_to_skip(name: str) -> str:
    """Why this sandbox cannot be tried here; empty when it can."""
    found = availability(name)
    return "" if found.state == "usable" else f"{name} is {found.state}: {found.reason}"


def http() -> Any:
    """The sandbox's calls go over HTTP instead of its own channel."""
    from hatchway.transports.http import HttpCallbackTransport

    return HttpCallbackTransport()


TRANSPORTS = {"process": {"http": http}}
"""Transports beyond a sandbox's own; sealed sandboxes have no sockets, hence no other."""
ABOUT_CALLS = {"calls", "answers", "waiting", "parallel", "tool_errors", "values", "cancellation", "concurrency"}
"""What another transport can break; the rest is tried on it as well, but not in a hurry."""

ELSEWHERE = {"container", "hyperlight"}
"""Tried in files of their own: containers take their time, and Hyperlight needs a hypervisor."""


def cases() -> Iterator[Any]:
    """Each check on each sandbox by name, then on each with another transport."""
    for name, check in product([name for name in ROWS if name not in ELSEWHERE], CHECKS):
        yield pytest.param(name, partial(make_sandbox, name), check, id=f"{name}-{check.id}")
        for transport, made in TRANSPORTS.get(name, {}).items():
            factory = partial(make_sandbox, name, transport=made)
            marks = [] if check.topic in ABOUT_CALLS else [pytest.mark.slow]
            yield pytest.param(name, factory, check, id=f"{name}-{transport}-{check.id}", marks=marks)


@pytest.mark.parametrize(("name", "factory", "check"), list(cases()))
def test_conformance(name: str, factory: Callable[[], CodeSandbox], check: Check) -> None:
    if reason := reason_to_skip(name):
        pytest.skip(reason)
    outcome = asyncio.run(run_check(check, factory))
    if outcome.state == "skipped":
        pytest.skip(outcome.message)
    assert outcome.state == "passed", f"{check.description}\n{outcome.message}"
