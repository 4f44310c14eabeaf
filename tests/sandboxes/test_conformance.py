"""Every registered sandbox, over every transport it takes, against the whole conformance suite."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import pytest

from hatchway.core.sandbox import CodeSandbox
from hatchway.sandboxes.registry import ROWS, availability, make_sandbox
from hatchway.testing import CHECKS, Check, run_check

reason_to_skip = cache(lambda name: "" if (a := availability(name)).state == "usable" else a.reason or a.state)


def http() -> Any:
    """The sandbox's calls go over HTTP instead of its own channel."""
    from hatchway.transports.http import HttpCallbackTransport

    return HttpCallbackTransport()


TRANSPORTS = {"process": {"http": http}}
"""Transports beyond a sandbox's own; sealed sandboxes have no sockets, hence no other."""


def places() -> Iterator[Any]:
    """Each sandbox by name, then with each other transport."""
    for name in ROWS:
        yield pytest.param(name, partial(make_sandbox, name), id=name)
        for transport, made in TRANSPORTS.get(name, {}).items():
            yield pytest.param(name, partial(make_sandbox, name, transport=made), id=f"{name}-{transport}")


@pytest.mark.parametrize("check", [pytest.param(check, id=check.id) for check in CHECKS])
@pytest.mark.parametrize(("name", "factory"), places())
def test_conformance(name: str, factory: Callable[[], CodeSandbox], check: Check) -> None:
    if reason := reason_to_skip(name):
        pytest.skip(reason)
    outcome = asyncio.run(run_check(check, factory))
    if outcome.state == "skipped":
        pytest.skip(outcome.message)
    assert outcome.state == "passed", f"{check.description}\n{outcome.message}"
