"""Code that runs at the model vendor: OpenAI, Anthropic and Gemini behind one layer."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hatchway.core.errors import AnswerWithheld
    from hatchway.hosted.adapter import HostedAdapter
    from hatchway.hosted.anthropic.adapter import AnthropicAdapter
    from hatchway.hosted.anthropic.tool import AnthropicCodeExecutionTool, CodeExecutionToolResult
    from hatchway.hosted.capabilities import CAPABILITIES, Capabilities, capability_table
    from hatchway.hosted.code import (
        ContainerRef,
        FileRef,
        HostedCodeCall,
        HostedCodeResult,
        HostedImage,
        ProgrammaticCall,
        Telemetry,
    )
    from hatchway.hosted.containers import AutoContainerConfig, DomainSecret, ExistingContainerRef, NetworkPolicy
    from hatchway.hosted.context import EventBus, PromptMetadata, ToolContext, ToolResult
    from hatchway.hosted.events import (
        ContainerLost,
        HostedCallMade,
        HostedCodeChunk,
        HostedCodeEnded,
        HostedCodeStarted,
        HostedRequestEnded,
        UnknownItem,
        UploadProgress,
    )
    from hatchway.hosted.gemini.adapter import GeminiAdapter
    from hatchway.hosted.gemini.tool import GeminiCodeExecutionTool, GeminiCodeResult
    from hatchway.hosted.mounts import HostMount, VfsPath
    from hatchway.hosted.openai.adapter import OpenAIAdapter
    from hatchway.hosted.openai.tool import CodeInterpreterResult, OpenAICodeInterpreterTool
    from hatchway.hosted.provider_tool import NoParams, ProviderTool, from_payload, to_payload, typed_tool
    from hatchway.hosted.reply import HostedReply
    from hatchway.hosted.sandbox import HostedSandbox
    from hatchway.hosted.session import HostedSession
    from hatchway.mode.code_places import code_tool
    from hatchway.tools.functions import Tool

_HOMES = {
    "core.errors": ("AnswerWithheld",),
    "hosted.adapter": ("HostedAdapter",),
    "hosted.anthropic.adapter": ("AnthropicAdapter",),
    "hosted.anthropic.tool": ("AnthropicCodeExecutionTool", "CodeExecutionToolResult"),
    "hosted.capabilities": ("CAPABILITIES", "Capabilities", "capability_table"),
    "hosted.code": (
        "ContainerRef", "FileRef", "HostedCodeCall", "HostedCodeResult", "HostedImage", "ProgrammaticCall", "Telemetry",
    ),
    "hosted.containers": ("AutoContainerConfig", "DomainSecret", "ExistingContainerRef", "NetworkPolicy"),
    "hosted.context": ("EventBus", "PromptMetadata", "ToolContext", "ToolResult"),
    "hosted.events": (
        "ContainerLost", "HostedCallMade", "HostedCodeChunk", "HostedCodeEnded", "HostedCodeStarted",
        "HostedRequestEnded", "UnknownItem", "UploadProgress",
    ),
    "hosted.gemini.adapter": ("GeminiAdapter",),
    "hosted.gemini.tool": ("GeminiCodeExecutionTool", "GeminiCodeResult"),
    "hosted.mounts": ("HostMount", "VfsPath"),
    "hosted.openai.adapter": ("OpenAIAdapter",),
    "hosted.openai.tool": ("CodeInterpreterResult", "OpenAICodeInterpreterTool"),
    "hosted.provider_tool": ("NoParams", "ProviderTool", "from_payload", "to_payload", "typed_tool"),
    "hosted.reply": ("HostedReply",),
    "hosted.sandbox": ("HostedSandbox",),
    "hosted.session": ("HostedSession",),
    "mode.code_places": ("code_tool",),
    "tools.functions": ("Tool",),
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "CAPABILITIES", "AnswerWithheld", "AnthropicAdapter", "AnthropicCodeExecutionTool", "AutoContainerConfig",
    "Capabilities", "CodeExecutionToolResult", "CodeInterpreterResult", "ContainerLost", "ContainerRef",
    "DomainSecret", "EventBus", "ExistingContainerRef", "FileRef", "GeminiAdapter", "GeminiCodeExecutionTool",
    "GeminiCodeResult", "HostMount", "HostedAdapter", "HostedCallMade", "HostedCodeCall", "HostedCodeChunk",
    "HostedCodeEnded", "HostedCodeResult", "HostedCodeStarted", "HostedImage", "HostedReply", "HostedRequestEnded",
    "HostedSandbox", "HostedSession", "NetworkPolicy", "NoParams", "OpenAIAdapter", "OpenAICodeInterpreterTool",
    "ProgrammaticCall", "PromptMetadata", "ProviderTool", "Telemetry", "Tool", "ToolContext", "ToolResult",
    "UnknownItem", "UploadProgress", "VfsPath", "capability_table", "code_tool", "from_payload", "to_payload",
    "typed_tool",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Names are imported on first use: a vendor's SDK is loaded for its adapter only."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'hatchway.hosted' has no attribute {name!r}")
    value = getattr(import_module(f"hatchway.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
