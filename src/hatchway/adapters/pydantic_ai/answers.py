"""Answers: how an action ended, in the framework's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.messages import BinaryContent, ToolReturn, UserContent

from hatchway.core.errors import CodeExecutionError, HatchwayError
from hatchway.core.plain_json import jsonable, plain_text
from hatchway.core.results import ExecFile, ExecutionResult
from hatchway.mode.telling import failure_text


def returned(result: ExecutionResult, shown: Sequence[UserContent] = ()) -> ToolReturn[Any]:
    """What the model gets: the output alone, or with what was printed; pictures, files and what tools showed beside."""
    value = jsonable(result.output)
    printed = {"stdout": result.stdout, "stderr": result.stderr}
    parts = {name: text for name, text in printed.items() if text}
    tables = [display.text for display in result.displays if not display.mime_type.startswith("image/")]
    if tables:
        parts["displayed"] = "\n".join(map(str, tables))
    if result.files:
        parts["files"] = ", ".join(file.name for file in result.files)
    if parts and value is not None:
        parts = {"output": value, **parts}
    return ToolReturn(
        return_value=parts or value,
        content=[*shown, *_contents([*result.images, *result.files])] or None,
        metadata={"code_mode": {"tier": result.tier, "calls": result.usage.calls}},
    )


def failed(error: HatchwayError) -> ModelRetry | ToolFailed:
    """The error to raise: the code can be written better, or the sandbox failed."""
    told = plain_text(failure_text(error))
    return ModelRetry(told) if isinstance(error, CodeExecutionError) else ToolFailed(told)


def _contents(files: Sequence[ExecFile | Any]) -> list[UserContent]:
    return [BinaryContent(data=_bytes(file.content), media_type=file.mime_type, identifier=file.name) for file in files]


def _bytes(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else content
