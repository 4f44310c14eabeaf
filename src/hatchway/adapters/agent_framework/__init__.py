"""Hatchway inside Microsoft Agent Framework: CodeAct providers on any sandbox."""

from hatchway.core.errors import MissingExtra

try:
    import agent_framework  # noqa: F401  # pyright: ignore[reportUnusedImport]
except ImportError as e:
    raise MissingExtra("Microsoft Agent Framework", "agent-framework") from e

from hatchway.adapters.agent_framework.places import code_tool
from hatchway.adapters.agent_framework.providers import (
    ContainerCodeActProvider,
    HyperlightCodeActProvider,
    JailCodeActProvider,
    MontyCodeActProvider,
)
from hatchway.adapters.agent_framework.tools import (
    ContainerExecuteCodeTool,
    HyperlightExecuteCodeTool,
    JailExecuteCodeTool,
    MontyExecuteCodeTool,
)
from hatchway.core.grants import AllowedDomain, AllowedDomainInput, FileMount, FileMountInput

__all__ = [
    "AllowedDomain",
    "AllowedDomainInput",
    "ContainerCodeActProvider",
    "ContainerExecuteCodeTool",
    "FileMount",
    "FileMountInput",
    "HyperlightCodeActProvider",
    "HyperlightExecuteCodeTool",
    "JailCodeActProvider",
    "JailExecuteCodeTool",
    "MontyCodeActProvider",
    "MontyExecuteCodeTool",
    "code_tool",
]
