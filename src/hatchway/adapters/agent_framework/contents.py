"""Contents: how an action ended, in the framework's content objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from agent_framework import Content
from pydantic_core import to_json

from hatchway.core.errors import CodeExecutionError, HatchwayError
from hatchway.core.plain_json import jsonable, plain_text
from hatchway.core.results import ExecutionResult
from hatchway.mode.telling import failure_kind, failure_text

ResultForm = Literal["flat", "code_interpreter"]
"""Contents side by side, or inside one `code_interpreter_tool_result`."""


def result_contents(result: ExecutionResult, form: ResultForm) -> list[Content]:
    """What was printed, the output, pictures and files."""
    parts = [result.stdout.rstrip("\n")] if result.stdout else []
    if result.stderr:
        parts.append(f"stderr:\n{result.stderr.rstrip()}")
    parts += [display.text for display in result.displays if not display.mime_type.startswith("image/")]
    if result.output is not None or not parts:
        parts.append(_text(result.output))
    media = _media([*result.images, *result.files])
    return _formed(Content.from_text(plain_text("\n".join(parts))), media, form)


def failure_contents(error: HatchwayError, form: ResultForm) -> list[Content]:
    """The error as text, which every client sends, and as error content, which programs read."""
    text = plain_text(failure_text(error))
    if isinstance(error, CodeExecutionError):
        code, media = failure_kind(error), _media([*error.images, *error.files])
    else:
        code, media = "Sandbox failed", list[Content]()
    told = Content.from_error(message=plain_text(error.message), error_code=code, error_details=text)
    return _formed(Content.from_text(text), [*media, told], form)


def _formed(text: Content, others: Sequence[Content], form: ResultForm) -> list[Content]:
    if form == "flat":
        return [text, *others]
    # the text stands outside too: clients send a function's text to the model, and not what is inside this content
    return [text, Content.from_code_interpreter_tool_result(outputs=[text, *others])]


def _media(files: Sequence[Any]) -> list[Content]:
    return [
        Content.from_data(
            file.content.encode() if isinstance(file.content, str) else file.content, file.mime_type, name=file.name
        )
        for file in files
    ]


def _text(value: Any) -> str:
    """The value as JSON; what is none is told as Python would show it."""
    if isinstance(value, str):
        return value
    try:
        return to_json(value, fallback=repr, inf_nan_mode="constants", bytes_mode="base64").decode()
    except ValueError:
        return to_json(jsonable(value)).decode()
