"""Answers: how an action ended, in the framework's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.messages import BinaryContent, ToolReturn, UserContent
from pydantic_core import from_json, to_json

from hatchway.core.calls import CallRecord
from hatchway.core.errors import (
    CodeExecutionError,
    CodeLimitError,
    CodeRuntimeError,
    CodeSyntaxError,
    CodeTimeoutError,
    CodeTypeError,
    HatchwayError,
)
from hatchway.core.results import ExecFile, ExecutionResult

MOST_CALLS = 20
"""Calls named in an error."""


def returned(result: ExecutionResult) -> ToolReturn[Any]:
    """What the model gets: the output alone, or with what was printed; pictures and files beside it."""
    value = _jsonable(result.output)
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
        content=_contents([*result.images, *result.files]) or None,
        metadata={"code_mode": {"tier": result.tier, "calls": result.usage.calls}},
    )


def failed(error: HatchwayError) -> ModelRetry | ToolFailed:
    """The error to raise: the code can be written better, or the sandbox failed."""
    if not isinstance(error, CodeExecutionError):
        return ToolFailed(f"sandbox failed: {error}")
    parts = [f"{_kind(error)} in the code:\n{error}"]
    if error.stdout:
        parts.append(f"Printed before that:\n{error.stdout}")
    if error.stderr:
        parts.append(f"On stderr:\n{error.stderr}")
    if error.calls:
        parts.append(f"Calls it had made, which are not undone:\n{_told(error.calls)}")
    return ModelRetry("\n\n".join(parts))


def _kind(error: CodeExecutionError) -> str:
    match error:
        case CodeSyntaxError():
            return "Syntax error"
        case CodeTypeError():
            return "Type error"
        case CodeRuntimeError():
            return "Runtime error"
        case CodeTimeoutError():
            return "Time limit reached"
        case CodeLimitError():
            return "Limit reached"
        case _:
            return "Error"


def _told(calls: Sequence[CallRecord]) -> str:
    lines = [_line(record) for record in calls[-MOST_CALLS:]]
    more = len(calls) - len(lines)
    return "\n".join([*([f"- {more} earlier calls"] if more > 0 else []), *lines])


def _line(record: CallRecord) -> str:
    given = ", ".join(f"{name}={value!r:.60}" for name, value in record.call.kwargs.items())
    called = f"- {record.call.function_name}({given})"
    match record.state:
        case "done":
            return f"{called} returned {record.value!r:.80}"
        case "failed" | "denied":
            return f"{called} {record.state}: {record.error:.200}"
        case "started" | "pending" | "in_doubt":
            return f"{called} {record.state}"
        case _:
            assert_never(record.state)


def _contents(files: Sequence[ExecFile | Any]) -> list[UserContent]:
    return [BinaryContent(data=_bytes(file.content), media_type=file.mime_type, identifier=file.name) for file in files]


def _bytes(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _jsonable(value: Any) -> Any:
    """The value as JSON; what is none is told as Python would show it, so that nothing is lost to a bad last line."""
    try:
        return from_json(to_json(value, fallback=repr, inf_nan_mode="strings", bytes_mode="base64"))
    except ValueError:
        return repr(value)
