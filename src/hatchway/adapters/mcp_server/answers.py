"""What a client is told: results, pictures and files as content; failures; calls that wait."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)

from hatchway.adapters.mcp_server.media import taken_out
from hatchway.core.calls import FunctionCall
from hatchway.core.errors import (
    ApprovalRequired,
    CodeExecutionError,
    CodeTimeoutError,
    HatchwayError,
    InDoubt,
    SandboxCrashed,
    SandboxUnavailable,
    TransportError,
)
from hatchway.core.output import OutputBuffer
from hatchway.core.results import ExecFile, ExecutionResult
from hatchway.core.values import as_python

MAX_FILES = 5 << 20
"""Bytes of pictures and files that are sent along with an answer; what does not fit is named only."""
MAX_FILES_OF_EVENT = 600 << 10
"""The same over HTTP: clients of the official SDK drop a connection that sends more than a MiB in one event."""
_SLOWER = "give execute_code a longer timeout, or let the code do less"
_MAX_TEXT = 100_000
"""Bytes of text; of more the middle is cut."""


def text(said: str, *, is_error: bool = False) -> CallToolResult:
    """An answer of text alone."""
    return CallToolResult(content=[TextContent(type="text", text=said)], is_error=is_error)


def done(result: ExecutionResult, most: int = MAX_FILES) -> CallToolResult:
    """What the code printed, the value of its last expression, its pictures and files, `most` bytes of those."""
    output, media = taken_out(result.output)
    shown = [result.stdout.rstrip("\n"), "" if output is None else as_text(output)]
    if result.stderr.strip():
        shown.append(f"stderr:\n{result.stderr.rstrip()}")
    said = "\n".join(part for part in shown if part) or "(no output)"
    seen = (*media, *result.images)
    return CallToolResult(content=[_text(said), *_extras((*seen, *result.files), len(seen), most)])


def failed(error: HatchwayError, most: int = MAX_FILES) -> CallToolResult:
    """Why there is no result; what the code had printed and shown until then comes along."""
    if isinstance(error, SandboxCrashed | SandboxUnavailable | TransportError):
        return text(f"sandbox failed: {error}", is_error=True)
    if not isinstance(error, CodeExecutionError):
        return text(str(error), is_error=True)
    if isinstance(error, CodeTimeoutError):
        error.hint = _SLOWER  # its own speaks of Limits, which a client does not have
    said = "\n".join(part for part in (error.stdout.rstrip("\n"), str(error)) if part)
    return CallToolResult(content=[_text(said), *_extras(error.files, 0, most)], is_error=True)


def waiting(error: ApprovalRequired) -> CallToolResult:
    """The calls a run waits for, and how to go on."""
    said = f"Run {error.run_id} waits for approval of:"
    return _standing("waiting", error.run_id, error.pending, said, "Ask the person, then call resume.")


def in_doubt(error: InDoubt) -> CallToolResult:
    """The calls of which nobody knows whether they ran, and how to go on."""
    said = f"Run {error.run_id} was killed during these calls; nobody knows whether they ran:"
    then = 'Look whether their effects are there, then call resume with "not_run" or {"ran": value} for each.'
    return _standing("in_doubt", error.run_id, error.calls, said, then)


def as_text(value: Any) -> str:
    """Text as it is, anything else as JSON where that says it."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        return as_python(value)


def _standing(status: str, run_id: str, calls: Sequence[FunctionCall], said: str, then: str) -> CallToolResult:
    pending = [_shown(call) for call in calls]
    listed = "\n".join(f"- {each['call_id']}: {each['tool']}({each['arguments']})" for each in pending)
    told = {"status": status, "run_id": run_id, "pending": pending}
    return CallToolResult(content=[_text(f"{said}\n{listed}\n{then}")], structured_content=told)


def _shown(call: FunctionCall) -> dict[str, Any]:
    return {"call_id": call.call_id, "tool": call.function_name, "arguments": as_text(dict(call.kwargs))}


def _text(said: str) -> TextContent:
    kept = OutputBuffer(_MAX_TEXT)
    kept.append(said)
    return TextContent(type="text", text=kept.text())


def _extras(files: Sequence[ExecFile], images: int, most: int) -> list[ContentBlock]:
    """Files as content, the first `images` of them as pictures or sound; none past `most` bytes in all."""
    made: list[ContentBlock] = []
    for number, file in enumerate(files):
        if file.size > most:
            made.append(TextContent(type="text", text=f"{file.name}: {file.size} bytes, too large to send along"))
            continue
        most -= file.size
        made.append(_image(file) if number < images else _file(file))
    return made


def _image(image: ExecFile) -> ContentBlock:
    data = base64.b64encode(image.content).decode()
    if image.mime_type.startswith("audio/"):
        return AudioContent(type="audio", data=data, mime_type=image.mime_type)
    return ImageContent(type="image", data=data, mime_type=image.mime_type)


def _file(file: ExecFile) -> ContentBlock:
    uri = f"output:///{file.name}"
    if file.mime_type.startswith("text/") or file.mime_type == "application/json":
        try:
            told = file.content.decode()
        except UnicodeDecodeError:
            pass
        else:
            held = TextResourceContents(uri=uri, mime_type=file.mime_type, text=told)
            return EmbeddedResource(type="resource", resource=held)
    blob = base64.b64encode(file.content).decode()
    return EmbeddedResource(
        type="resource", resource=BlobResourceContents(uri=uri, mime_type=file.mime_type, blob=blob)
    )
