"""Public test tools: the conformance suite for sandboxes, a scripted model, fake tools."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hatchway.testing.agent_model import Call, ScriptedAgentModel, Thinking
    from hatchway.testing.conformance import CHECKS, Check
    from hatchway.testing.conformance.runner import CheckOutcome, ConformanceReport, run_check, run_conformance
    from hatchway.testing.scripted import Reply, ScriptedModel, ScriptEnded
    from hatchway.testing.under_pytest import pytest_checks
    from hatchway.testing.vendor import ScriptedVendor, VendorReply, VendorRequest
    from hatchway.testing.vendor_script import CallsTool, CodeEnded, RanCode, VendorSays

__all__ = [
    "CHECKS",
    "Call",
    "CallsTool",
    "Check",
    "CheckOutcome",
    "CodeEnded",
    "ConformanceReport",
    "RanCode",
    "Reply",
    "ScriptEnded",
    "ScriptedAgentModel",
    "ScriptedModel",
    "ScriptedVendor",
    "Thinking",
    "VendorReply",
    "VendorRequest",
    "VendorSays",
    "pytest_checks",
    "run_check",
    "run_conformance",
]

_HOMES = {
    "agent_model": ("Call", "ScriptedAgentModel", "Thinking"),
    "conformance": ("CHECKS", "Check"),
    "conformance.runner": ("CheckOutcome", "ConformanceReport", "run_check", "run_conformance"),
    "scripted": ("Reply", "ScriptEnded", "ScriptedModel"),
    "under_pytest": ("pytest_checks",),
    "vendor": ("ScriptedVendor", "VendorReply", "VendorRequest"),
    "vendor_script": ("CallsTool", "CodeEnded", "RanCode", "VendorSays"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Names are imported on first use: whoever wants the scripted model does not pay for two hundred checks."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'hatchway.testing' has no attribute {name!r}")
    value = getattr(import_module(f"hatchway.testing.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
