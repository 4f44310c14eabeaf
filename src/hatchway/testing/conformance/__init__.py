"""The conformance suite: the contract of `hatchway.core.sandbox` as checks. A topic is a module."""

from hatchway.testing.conformance import (  # noqa: F401, I001  # importing registers; the order is that of the report
    sandbox,
    results,
    output,
    failures,
    calls,
    styles,
    answers,
    waiting,
    parallel,
    tool_errors,
    values,
    refused,
    flags,
    limits,
    clock,
    cancellation,
    concurrency,
    sessions,
    checkpoints,
    secrets,
    hostile,
    descendants,
)
from hatchway.testing.conformance.checks import Check, registered

CHECKS: tuple[Check, ...] = registered()
"""Every check, in the order of a report."""
