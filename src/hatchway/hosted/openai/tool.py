"""OpenAICodeInterpreterTool: Python in a container at OpenAI."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hatchway.core.errors import InvalidSetting
from hatchway.hosted.code import FileRef, HostedCodeResult, Status
from hatchway.hosted.containers import AutoContainerConfig, ContainerConfig, container_config, mounts
from hatchway.hosted.context import ToolResult
from hatchway.hosted.given import texts
from hatchway.hosted.mounts import HostMount
from hatchway.hosted.provider_tool import NoParams, ProviderTool
from hatchway.tools.functions import Tool, as_tools

SUFFIXES = frozenset(
    {
        *(".c", ".cpp", ".cs", ".css", ".csv", ".doc", ".docx", ".gif", ".gz", ".htm", ".html", ".ipynb", ".java"),
        *(".jpeg", ".jpg", ".js", ".json", ".jsonl", ".md", ".parquet", ".pdf", ".php", ".pkl", ".png", ".pptx"),
        *(".py", ".rb", ".sh", ".sql", ".svg", ".tar", ".tex", ".toml", ".ts", ".tsv", ".txt", ".webp", ".xls"),
        *(".xlsx", ".xml", ".yaml", ".yml", ".zip"),
    }
)
"""Files a container takes."""
MAX_FILE_BYTES = 512 * 1024 * 1024
"""Of one uploaded file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeInterpreterResult:
    """What one run of the code interpreter gave."""

    output_text: str = ""
    """What it printed; OpenAI does not tell stdout and stderr apart."""
    status: Status = "unknown"
    code: str = ""
    call_id: str = ""
    container_id: str | None = None
    language: str = "python"
    image_urls: tuple[str, ...] = ()
    citations: tuple[FileRef, ...] = ()
    """Files it made, as the next message cites them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenAICodeInterpreterTool(ProviderTool[NoParams, CodeInterpreterResult, ContainerConfig]):
    """OpenAI's code interpreter.

    `container` is an `AutoContainerConfig`, an `ExistingContainerRef`, the same as a dict, or a container id.
    Its code may call `tools` from programs; each call passes our gate.

    Raises:
        InvalidSetting: The container is not one: unknown memory tier, no id, an unknown field.
    """

    name: str = "code_interpreter"
    description: str = "Runs Python that the model writes, in a container at OpenAI."
    provider: Any = "openai"
    container: Any = field(default_factory=AutoContainerConfig)
    host_mounts: tuple[HostMount, ...] = ()
    """Files of this machine, uploaded first; the same as those of `container`."""
    allowed_callers: tuple[Literal["direct", "programmatic"], ...] = ()
    """Who may have it run: the model, or programs of the model too; empty leaves it to the vendor."""

    def __post_init__(self) -> None:
        if self.provider != "openai":
            raise InvalidSetting(
                f"the code interpreter runs at openai, not at {self.provider!r}", hint=f"code_tool({self.provider!r})"
            )
        if strangers := set(texts("allowed_callers", self.allowed_callers)) - {"direct", "programmatic"}:
            raise InvalidSetting(
                f"allowed_callers are 'direct' and 'programmatic', not {', '.join(map(str, strangers))}",
                hint='allowed_callers=("direct",)',
            )
        config = container_config(self.container)
        config = replace(config, host_mounts=tuple(dict.fromkeys((*config.host_mounts, *mounts(self.host_mounts)))))
        object.__setattr__(self, "container", config)
        object.__setattr__(self, "config", self.container)
        object.__setattr__(self, "tools", tuple(as_tools(self.tools).values()))
        Tool.__post_init__(self)

    @classmethod
    def configured(cls, config: Any) -> dict[str, Any]:
        """It is the container."""
        return {"container": config}

    def declaration(self) -> dict[str, Any]:
        """The tool as the Responses API takes it, with the container as it was asked for."""
        told: dict[str, Any] = {"type": "code_interpreter", "container": self.container.payload()}
        return {**told, "allowed_callers": list(self.allowed_callers)} if self.allowed_callers else told


def interpreted(code: HostedCodeResult) -> tuple[CodeInterpreterResult, ToolResult[Any]]:
    """A code result as the tool's own, and the `ToolResult` it gets without a handler."""
    result = CodeInterpreterResult(
        output_text=code.text,
        status=code.status,
        code=code.call.code,
        call_id=code.call.call_id,
        container_id=code.call.container_id,
        language=code.call.language,
        image_urls=tuple(image.url for image in code.images if image.url),
        citations=code.files,
    )
    return result, ToolResult(code.text, result, code.success)
