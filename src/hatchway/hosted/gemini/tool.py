"""GeminiCodeExecutionTool: Python at Google, without files that stay and without a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hatchway.core.errors import InvalidSetting, InvalidTool
from hatchway.hosted.code import HostedCodeResult, Status
from hatchway.hosted.containers import mounts
from hatchway.hosted.context import ToolResult
from hatchway.hosted.mounts import HostMount
from hatchway.hosted.provider_tool import NoParams, ProviderTool
from hatchway.tools.functions import Tool

MAX_FILE_BYTES = 14 * 1024 * 1024
"""Of one file: it goes along in the request, as base64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeminiCodeResult:
    """What one run of Gemini's code gave."""

    output: str = ""
    """What it printed when it went well, what went wrong otherwise."""
    status: Status = "unknown"
    code: str = ""
    call_id: str = ""
    images: int = 0
    """Pictures that came along; they are in the reply."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GeminiCodeExecutionTool(ProviderTool[NoParams, GeminiCodeResult, None]):
    """Gemini's code execution.

    Raises:
        InvalidTool: It was given tools: its code cannot call any.
    """

    name: str = "code_execution"
    description: str = "Runs Python that the model writes, at Google."
    provider: Any = "gemini"
    host_mounts: tuple[HostMount, ...] = ()
    """Files of this machine that go along in the request."""

    def __post_init__(self) -> None:
        if self.provider != "gemini":
            raise InvalidSetting(
                f"Gemini's code runs at gemini, not at {self.provider!r}", hint=f"code_tool({self.provider!r})"
            )
        object.__setattr__(self, "host_mounts", mounts(self.host_mounts))
        if self.tools:
            raise InvalidTool(
                "code at gemini cannot call your tools", hint="code_tool('jail', tools=…) can, with any model"
            )
        Tool.__post_init__(self)


def executed(code: HostedCodeResult) -> tuple[GeminiCodeResult, ToolResult[Any]]:
    """A code result as the tool's own, and the `ToolResult` it gets without a handler."""
    result = GeminiCodeResult(
        output=code.text,
        status=code.status,
        code=code.call.code,
        call_id=code.call.call_id,
        images=len(code.images),
    )
    return result, ToolResult(code.text, result, code.success)
