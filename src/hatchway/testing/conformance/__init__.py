"""The conformance suite: the contract of `hatchway.core.sandbox` as checks. A topic is a module."""

from importlib import import_module

from hatchway.testing.conformance.checks import Check, registered

__all__ = ["CHECKS", "TOPICS", "Check"]

TOPICS = (
    "sandbox", "results", "output", "displays", "failures", "calls", "styles", "answers", "waiting", "parallel",
    "tool_errors", "values", "refused", "flags", "limits", "clock", "cancellation", "concurrency", "sessions",
    "checkpoints", "secrets", "hostile", "descendants",
)  # fmt: skip
"""In the order of a report: what a backend gets right first comes first."""

for _topic in TOPICS:
    import_module(f"{__name__}.{_topic}")  # registers its checks

CHECKS: tuple[Check, ...] = registered()
"""Every check, in the order of a report."""
