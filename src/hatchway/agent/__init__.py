"""The agent: acts by code, asks before it acts, can be resumed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hatchway.agent.agent import Agent
    from hatchway.core.events import (
        AgentEvent,
        ApprovalRequest,
        Cancelled,
        CodeExecutionOutput,
        CodeExecutionOutputChunk,
        Compacted,
        Response,
        ResponseChunk,
        Retrying,
        Thoughts,
        ThoughtsChunk,
        ToolOutput,
    )

_HOMES = {
    "agent.agent": ("Agent",),
    "core.events": (
        "AgentEvent", "ApprovalRequest", "Cancelled", "CodeExecutionOutput", "CodeExecutionOutputChunk", "Compacted",
        "Response", "ResponseChunk", "Retrying", "Thoughts", "ThoughtsChunk", "ToolOutput",
    ),
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Agent", "AgentEvent", "ApprovalRequest", "Cancelled", "CodeExecutionOutput", "CodeExecutionOutputChunk",
    "Compacted", "Response", "ResponseChunk", "Retrying", "Thoughts", "ThoughtsChunk", "ToolOutput",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Names are imported on first use: the libraries of models take a second."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'hatchway.agent' has no attribute {name!r}")
    value = getattr(import_module(f"hatchway.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
