"""Executors: code a model wrote in, its output out; and the loop that feeds it back."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hatchway.core.results import ExecFile
    from hatchway.executors.container import ContainerCodeExecutor
    from hatchway.executors.conversation import Conversation, Turn
    from hatchway.executors.execution import CodeExecutionInput, CodeExecutionResult
    from hatchway.executors.executor import CodeExecutor, InvocationContext
    from hatchway.executors.llm_agent import LlmAgent
    from hatchway.executors.local import LocalCodeExecutor
    from hatchway.executors.parts import CodeExecutionResultPart, ExecutableCodePart, Outcome
    from hatchway.executors.sandbox import SandboxCodeExecutor

__all__ = [
    "CodeExecutionInput",
    "CodeExecutionResult",
    "CodeExecutionResultPart",
    "CodeExecutor",
    "ContainerCodeExecutor",
    "Conversation",
    "ExecFile",
    "ExecutableCodePart",
    "InvocationContext",
    "LlmAgent",
    "LocalCodeExecutor",
    "Outcome",
    "SandboxCodeExecutor",
    "Turn",
]

_HOMES = {
    "core.results": ("ExecFile",),
    "executors.container": ("ContainerCodeExecutor",),
    "executors.conversation": ("Conversation", "Turn"),
    "executors.execution": ("CodeExecutionInput", "CodeExecutionResult"),
    "executors.executor": ("CodeExecutor", "InvocationContext"),
    "executors.llm_agent": ("LlmAgent",),
    "executors.local": ("LocalCodeExecutor",),
    "executors.parts": ("CodeExecutionResultPart", "ExecutableCodePart", "Outcome"),
    "executors.sandbox": ("SandboxCodeExecutor",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Names are imported on first use: a local executor does not pay for an engine or a model library."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'hatchway.executors' has no attribute {name!r}")
    value = getattr(import_module(f"hatchway.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
