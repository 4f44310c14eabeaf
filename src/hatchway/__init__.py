"""Hatchway: the runtime for agents that act by writing code."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hatchway.core.calls import CallContext, FunctionCall, FunctionSignature, Waiting
    from hatchway.core.constraints import CodeConstraints
    from hatchway.core.decisions import Allow, Deny, Edit, NotRun, Ran
    from hatchway.core.errors import (
        ApprovalRequired,
        CheckpointRefused,
        CodeExecutionError,
        CodeLimitError,
        CodeRuntimeError,
        CodeSyntaxError,
        CodeTimeoutError,
        CodeTypeError,
        HatchwayError,
        InDoubt,
        SandboxCrashed,
        SandboxUnavailable,
        ToolDenied,
        ToolError,
        TransportError,
    )
    from hatchway.core.limits import Limits
    from hatchway.core.results import ExecFile, ExecutionResult
    from hatchway.core.sandbox import CodeExecution, CodeSandbox, CodeSession
    from hatchway.gate.rules import Rule
    from hatchway.mode.mode import CodeMode
    from hatchway.tools.functions import Tool, tool

_HOMES = {
    "core.calls": ("CallContext", "FunctionCall", "FunctionSignature", "Waiting"),
    "core.constraints": ("CodeConstraints",),
    "core.decisions": ("Allow", "Deny", "Edit", "NotRun", "Ran"),
    "core.errors": (
        "ApprovalRequired", "CheckpointRefused", "CodeExecutionError", "CodeLimitError", "CodeRuntimeError",
        "CodeSyntaxError", "CodeTimeoutError", "CodeTypeError", "HatchwayError", "InDoubt", "SandboxCrashed",
        "SandboxUnavailable", "ToolDenied", "ToolError", "TransportError",
    ),
    "core.limits": ("Limits",),
    "core.results": ("ExecFile", "ExecutionResult"),
    "core.sandbox": ("CodeExecution", "CodeSandbox", "CodeSession"),
    "gate.rules": ("Rule",),
    "mode.mode": ("CodeMode",),
    "tools.functions": ("Tool", "tool"),
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Allow", "ApprovalRequired", "CallContext", "CheckpointRefused", "CodeConstraints", "CodeExecution",
    "CodeExecutionError", "CodeLimitError", "CodeMode", "CodeRuntimeError", "CodeSandbox", "CodeSession",
    "CodeSyntaxError", "CodeTimeoutError", "CodeTypeError", "Deny", "Edit", "ExecFile", "ExecutionResult",
    "FunctionCall", "FunctionSignature", "HatchwayError", "InDoubt", "Limits", "NotRun", "Ran", "Rule",
    "SandboxCrashed", "SandboxUnavailable", "Tool", "ToolDenied", "ToolError", "TransportError", "Waiting", "tool",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Names are imported on first use: `import hatchway` costs next to nothing."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'hatchway' has no attribute {name!r}")
    value = getattr(import_module(f"hatchway.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
