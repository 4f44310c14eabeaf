"""AnthropicCodeExecutionTool: Python and bash in a container at Anthropic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from hatchway.core.errors import InvalidSetting
from hatchway.hosted.code import FileRef, HostedCodeResult, Status
from hatchway.hosted.containers import mounts
from hatchway.hosted.context import ToolResult
from hatchway.hosted.given import texts
from hatchway.hosted.mounts import HostMount
from hatchway.hosted.provider_tool import NoParams, ProviderTool
from hatchway.tools.functions import Tool, as_tools

Version = Literal[
    "code_execution_20250522", "code_execution_20250825", "code_execution_20260120", "code_execution_20260521"
]
VERSIONS = get_args(Version)
MAX_FILE_BYTES = 500 * 1024 * 1024
"""Of one uploaded file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeExecutionToolResult:
    """What one run of the code execution tool gave."""

    stdout: str | None = None
    """None where Anthropic keeps it to itself (encrypted)."""
    stderr: str | None = None
    exit_code: int | None = None
    status: Status = "unknown"
    error_code: str = ""
    code: str = ""
    language: str = "python"
    call_id: str = ""
    container_id: str | None = None
    files: tuple[FileRef, ...] = ()
    """Files it made."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnthropicCodeExecutionTool(ProviderTool[NoParams, CodeExecutionToolResult, None]):
    """Anthropic's code execution tool. Its Python may call `tools`; each call passes our gate.

    Raises:
        InvalidSetting: An unknown version, tools for one that cannot call them, or a file id that is none.
    """

    name: str = "code_execution"
    description: str = "Runs Python and bash that the model writes, in a container at Anthropic."
    provider: Any = "anthropic"
    version: Version = "code_execution_20260120"
    container: str | None = None
    """The id of a container that is there already."""
    skills: tuple[dict[str, Any], ...] = ()
    """Skills to load into the container, as the API takes them."""
    file_ids: tuple[str, ...] = ()
    """Files uploaded before."""
    host_mounts: tuple[HostMount, ...] = ()
    """Files of this machine, uploaded first."""

    def __post_init__(self) -> None:
        if self.version not in VERSIONS:
            raise InvalidSetting(
                f"version is one of {', '.join(VERSIONS)}, not {self.version!r}", hint=f"version={VERSIONS[-2]!r}"
            )
        if self.provider != "anthropic" or self.name != "code_execution":
            raise InvalidSetting(
                "Anthropic's tool is named code_execution and runs at anthropic", hint="leave name and provider out"
            )
        if self.container is not None and (not isinstance(self.container, str) or not self.container.strip()):
            raise InvalidSetting("a container is named by its id", hint="leave it out for a new one")
        object.__setattr__(self, "file_ids", texts("file_ids", self.file_ids))
        object.__setattr__(self, "host_mounts", mounts(self.host_mounts))
        object.__setattr__(self, "tools", tuple(as_tools(self.tools).values()))
        if self.tools and self.version == "code_execution_20250522":
            raise InvalidSetting(f"code of {self.version} cannot call tools", hint=f"version={VERSIONS[-2]!r}")
        Tool.__post_init__(self)

    def declaration(self) -> dict[str, Any]:
        """The tool as the Messages API takes it."""
        return {"type": self.version, "name": "code_execution"}


def executed(code: HostedCodeResult) -> tuple[CodeExecutionToolResult, ToolResult[Any]]:
    """A code result as the tool's own, and the `ToolResult` it gets without a handler."""
    result = CodeExecutionToolResult(
        stdout=code.stdout,
        stderr=code.stderr,
        exit_code=code.exit_code,
        status=code.status,
        error_code=code.error_code,
        code=code.call.code,
        language=code.call.language,
        call_id=code.call.call_id,
        container_id=code.call.container_id,
        files=code.files,
    )
    return result, ToolResult(code.text or code.error_code, result, code.success)
