"""A model's reply as code to run, and the results as the message it gets next."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hatchway.core.results import ExecFile
from hatchway.executors.attempts import Executed
from hatchway.executors.code_blocks import code_blocks, fenced
from hatchway.executors.parts import ExecutableCodePart, Outcome
from hatchway.mode.models import (
    BinaryContent,
    ModelRequestPart,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Pictures a model may be shown."""


@dataclass(frozen=True, slots=True)
class UnknownCall:
    """A call of a tool that was not offered, or without code in it."""

    id: str
    tool_name: str
    problem: str


Asked = ExecutableCodePart | UnknownCall
"""What a model wants done."""


def asked_for(reply: ModelResponse, *, languages: Collection[str], tool_name: str | None) -> list[Asked]:
    """What a reply wants done, in order: its tool calls; without any, the fenced blocks of its text."""
    calls = [part for part in reply.parts if isinstance(part, ToolCallPart)]
    if calls:
        return [_called(call, languages, tool_name) for call in calls]
    texts = [part.content for part in reply.parts if isinstance(part, TextPart)]
    return [block for text in texts for block in code_blocks(text, languages)]


def _called(call: ToolCallPart[Any], languages: Collection[str], tool_name: str | None) -> Asked:
    if call.tool_name != tool_name:
        return UnknownCall(call.tool_call_id, call.tool_name, f"there is no tool {call.tool_name!r}")
    args = call.args_as_dict()
    code, language = args.get("code"), args.get("language", next(iter(languages)))
    if not isinstance(code, str) or not isinstance(language, str):
        problem = 'the arguments must be {"code": "...", "language": "..."}'
        return UnknownCall(call.tool_call_id, call.tool_name, problem)
    return ExecutableCodePart(code, language, id=call.tool_call_id)


def told(
    asked: Sequence[Asked], done: Sequence[Executed | None], *, tool_name: str, images: bool
) -> list[ModelRequestPart]:
    """The parts of the next request: an answer to each tool call, or one message about all blocks.

    Args:
        asked: What the model wanted.
        done: What came of each; None for an unknown call.
        tool_name: Of the tool the model called.
        images: Whether pictures the code made are shown to the model.
    """
    parts: list[ModelRequestPart] = []
    blocks: list[UserContent] = []
    for number, (wanted, executed) in enumerate(zip(asked, done, strict=True), 1):
        if isinstance(wanted, UnknownCall):
            parts.append(ToolReturnPart(wanted.tool_name, wanted.problem, wanted.id, outcome="failed"))
            continue
        assert executed is not None
        content = [*_content(executed), *(_pictures(executed.part.files) if images else ())]
        if wanted.id:
            outcome: Literal["success", "failed"] = "failed" if executed.error is not None else "success"
            answer = content[0] if len(content) == 1 else content
            parts.append(ToolReturnPart(tool_name, answer, wanted.id, outcome=outcome))
        else:
            blocks += [f"Result of code block {number}:", *content]
    return [*parts, UserPromptPart(blocks)] if blocks else parts


def _content(executed: Executed) -> Iterator[str]:
    part = executed.part
    ends = {
        Outcome.OutcomeOk: "it went well",
        Outcome.OutcomeDeadlineExceeded: "it ran out of time",
        Outcome.OutcomeFailed: "it failed",
        Outcome.OutcomeUnspecified: "nobody knows how it ended",
    }
    code = f", exit code {executed.exit_code}" if executed.exit_code else ""
    files = "".join(f"\nfile: {file.name} ({file.mime_type}, {len(file.content)} bytes)" for file in part.files)
    yield f"{part.outcome.value}: {ends[part.outcome]}{code}\n{fenced(part.output)}{files}"


def _pictures(files: Iterable[ExecFile]) -> Iterator[BinaryContent]:
    for file in files:
        if file.mime_type in IMAGES:
            yield BinaryContent(data=file.content, media_type=file.mime_type)
