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

SEEN = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What every vendor's model looks at; of anything else some make an error that ends the run."""


def returned(result: ExecutionResult, shown: Sequence[UserContent] = ()) -> ToolReturn[Any]:
    """What the model gets: the output alone, or with what was printed; pictures and what tools showed beside.

    The files themselves are for the application, in `metadata["code_mode"]["files"]`: the model hears their names.
    """
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
    every = _contents([*result.images, *result.files])
    told = {"tier": result.tier, "calls": result.usage.calls, **({"files": every} if every else {})}
    return ToolReturn(
        return_value=parts or value,
        content=[*shown, *(each for each in every if each.media_type in SEEN)] or None,
        metadata={"code_mode": told},
    )


def failed(error: HatchwayError) -> ModelRetry | ToolFailed:
    """The error to raise: the code can be written better, or the sandbox failed."""
    told = plain_text(failure_text(error))
    return ModelRetry(told) if isinstance(error, CodeExecutionError) else ToolFailed(told)


def _contents(files: Sequence[ExecFile | Any]) -> list[BinaryContent]:
    return [BinaryContent(data=_bytes(file.content), media_type=file.mime_type, identifier=file.name) for file in files]


def _bytes(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else content
