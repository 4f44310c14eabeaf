"""What a model is told about its code actions and tool calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, cast

from hatchway.agent.desk import Refused
from hatchway.agent.interpreter import ActionEnd
from hatchway.agent.large_results import LargeResults
from hatchway.agent.models import BinaryContent, ToolCallPart, ToolReturnPart
from hatchway.agent.permissions import CODE_TOOL
from hatchway.agent.scaling import scaled
from hatchway.core.errors import CodeExecutionError, HatchwayError
from hatchway.core.results import ExecFile, ExecutionResult
from hatchway.core.values import as_python
from hatchway.mode.run import shown_text
from hatchway.mode.telling import failure_text

SEEN_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Pictures a model may be shown."""
MOST_PICTURES = 8
"""Of one action, shown to the model."""


async def action_told(call: ToolCallPart, ended: ActionEnd, large: LargeResults, prefix: str = "") -> ToolReturnPart:
    """What came of a code action."""
    end = ended.end
    assert end is not None, "an action that a person stopped is told by `refusal_told`"
    is_good = isinstance(end, ExecutionResult)
    said = _result_text(end) if is_good else failure_text(end)
    notes = "".join(f"\n\n{note}" for note in ended.notes)
    text = f"{prefix}{large.shortened(said, 'output')}{notes}"
    images = end.images if isinstance(end, ExecutionResult | CodeExecutionError) else ()
    pictures, unseen = await asyncio.to_thread(_pictures, images) if images else ([], "")
    text += unseen
    content: Any = [text, *pictures] if pictures else text
    return ToolReturnPart(call.tool_name, content, call.tool_call_id, outcome="success" if is_good else "failed")


async def value_told(call: ToolCallPart, value: Any, large: LargeResults) -> ToolReturnPart:
    """What a tool of the model gave: text, data as JSON, and pictures as such."""
    parts: list[Any] = cast(list[Any], value) if isinstance(value, list) else [value]
    given = [_picture(part) for part in parts if _is_picture(part)]
    pictures, unseen = await asyncio.to_thread(_pictures, given) if given else ([], "")
    rest = [part for part in parts if not _is_picture(part)]
    plain = cast(Any, value if not given else rest[0] if len(rest) == 1 else rest)
    text = "" if given and not rest else large.shortened(plain if isinstance(plain, str) else as_text(plain), "tool")
    text = f"{text}{unseen}".lstrip("\n")
    content: Any = [*([text] if text else []), *pictures] if pictures else text
    return ToolReturnPart(call.tool_name, content, call.tool_call_id)


def as_text(value: Any) -> str:
    """A value as a model reads it."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        return as_python(value)


def _is_picture(part: Any) -> bool:
    return isinstance(part, dict) and part.get("mime_type") in SEEN_TYPES and isinstance(part.get("data"), bytes)  # pyright: ignore[reportUnknownMemberType]


def _picture(part: dict[str, Any]) -> ExecFile:
    return ExecFile(name="a picture", content=part["data"], mime_type=part["mime_type"])


def refusal_told(call: ToolCallPart, refused: Refused, notes: Sequence[str] = ()) -> ToolReturnPart:
    """That somebody or something said no."""
    what = "this code action" if refused.tool_name == call.tool_name == CODE_TOOL else refused.tool_name
    said = f"The user rejected {what}" if refused.by_person else f"Denied: {what}"
    why = f": {refused.reason}" if refused.reason else "."
    stopped = "\nThe code action was stopped there." if refused.tool_name != call.tool_name else ""
    text = "".join([f"{said}{why}{stopped}", *(f"\n\n{note}" for note in notes)])
    return ToolReturnPart(call.tool_name, text, call.tool_call_id, outcome="denied")


def failure_told(call: ToolCallPart, problem: str | HatchwayError) -> ToolReturnPart:
    """That a call could not be done."""
    return ToolReturnPart(call.tool_name, str(problem), call.tool_call_id, outcome="failed")


def _result_text(result: ExecutionResult) -> str:
    shown = shown_text(result) or ""
    errors = f"\n\nOn stderr:\n{result.stderr}" if result.stderr else ""
    files = "".join(f"\nfile: output/{file.name} ({file.mime_type}, {file.size} bytes)" for file in result.files)
    return f"{shown}{errors}{files}".strip("\n") or "(no output)"


def _pictures(images: Sequence[ExecFile]) -> tuple[list[BinaryContent], str]:
    """Those a model is shown, small enough for vendors, and a line for each it is not."""
    seen: list[BinaryContent] = []
    unseen: list[str] = []
    for image in images:
        try:
            if image.mime_type not in SEEN_TYPES:
                raise ValueError("it is no picture you can see")
            if len(seen) == MOST_PICTURES:
                raise ValueError(f"{MOST_PICTURES} at most are shown at once")
            content, mime_type = scaled(image.content)
            seen.append(BinaryContent(data=content, media_type=mime_type))
        except ValueError as e:
            unseen.append(f"\nnot shown to you: {image.name} ({image.mime_type}): {e}")
    return seen, "".join(unseen)
