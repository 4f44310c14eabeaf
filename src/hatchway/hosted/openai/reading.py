"""Reading OpenAI's responses: every output item, wherever it stands."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hatchway.hosted.code import (
    Answer,
    ContainerRef,
    FileRef,
    HostedCodeCall,
    HostedCodeResult,
    HostedImage,
    Item,
    ProgrammaticCall,
    Status,
    Stop,
    picture,
)
from hatchway.hosted.wire import item_of, items_of, number_of, text_of

KNOWN = frozenset(
    {
        *("message", "reasoning", "function_call", "code_interpreter_call", "program", "program_output"),
        *("function_call_output", "file_search_call", "web_search_call", "computer_call", "computer_call_output"),
        *("tool_search_call", "tool_search_output", "additional_tools", "compaction", "image_generation_call"),
        *("local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output", "apply_patch_call"),
        *("apply_patch_call_output", "mcp_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response"),
        *("custom_tool_call", "custom_tool_call_output"),
    }
)
"""Kinds of items the SDK of today knows; all of them are kept, those about code are read."""
_STATUS: dict[str, Status] = {
    "completed": "unknown",  # that it ran; whether Python raised, OpenAI does not say
    "failed": "failed",
    "incomplete": "interrupted",
    "in_progress": "interrupted",
    "interpreting": "interrupted",
}


def read_response(response: Item, before: Sequence[Item]) -> Answer:
    """A whole response."""
    items = items_of(response, "output")
    codes = _codes(items, before)
    calls = tuple(_call(item) for item in items if item.get("type") == "function_call")
    parts = [part for item in items if item.get("type") == "message" for part in items_of(item, "content")]
    stop, reason = _stop(response, bool(calls))
    usage = item_of(response, "usage")
    containers = [code.call.container_id for code in codes if code.call.container_id]
    return Answer(
        items=tuple(items),
        stop=stop,
        reason=reason,
        said=tuple(_said(item) for item in items if item.get("type") != "reasoning"),
        refusal="".join(text_of(part, "refusal") for part in parts if part.get("type") == "refusal"),
        thoughts=_thoughts(items),
        codes=codes,
        begun=_begun(items),
        calls=calls,
        citations=tuple(file for part in parts for file in _citations(part)),
        container=ContainerRef(id=containers[-1]) if containers else None,
        unknown=tuple(kind for item in items if (kind := str(item.get("type"))) not in KNOWN),
        response_id=text_of(response, "id") or None,
        model=text_of(response, "model"),
        input_tokens=number_of(usage, "input_tokens"),
        output_tokens=number_of(usage, "output_tokens"),
    )


def read_code(item: Item) -> HostedCodeResult:
    """A `code_interpreter_call`."""
    call = HostedCodeCall(
        provider="openai",
        call_id=text_of(item, "id"),
        language="python",
        code=text_of(item, "code"),
        container_id=text_of(item, "container_id") or None,
        caller=text_of(item_of(item, "caller"), "type") or "direct",
    )
    outputs = items_of(item, "outputs")
    pictures = [output for output in outputs if output.get("type") == "image"]
    strange = [output for output in outputs if output.get("type") not in ("logs", "image")]
    logs = "".join(text_of(output, "logs") for output in outputs if output.get("type") == "logs")
    return HostedCodeResult(
        call=call,
        status=_STATUS.get(text_of(item, "status"), "unknown"),
        logs=None if item.get("outputs") is None else logs,
        images=tuple(_image(text_of(output, "url"), number) for number, output in enumerate(pictures, 1)),
        opaque={"outputs": strange} if strange else {},
    )


def read_program(program: Item, output: Item) -> HostedCodeResult:
    """A `program` and its `program_output`."""
    result = output.get("result")
    return HostedCodeResult(
        call=_program({**program, "call_id": text_of(output, "call_id")}),
        status="interrupted" if output.get("status") == "incomplete" else "unknown",
        logs=result if isinstance(result, str) else json.dumps(result),
        opaque={"fingerprint": program.get("fingerprint")},
    )


def _said(item: Item) -> str | None:
    """The words of a message that are for the user; None for anything else, as it is work in between."""
    if item.get("type") != "message" or item.get("phase") == "commentary":
        return None
    return "".join(text_of(part, "text") for part in items_of(item, "content") if part.get("type") == "output_text")


def _program(item: Item) -> HostedCodeCall:
    return HostedCodeCall(
        provider="openai", call_id=text_of(item, "call_id"), language="javascript", code=text_of(item, "code")
    )


def _begun(items: Sequence[Item]) -> tuple[HostedCodeCall, ...]:
    """Programs that wait for what they called."""
    ended = {item.get("call_id") for item in items if item.get("type") == "program_output"}
    programs = [item for item in items if item.get("type") == "program"]
    return tuple(_program(item) for item in programs if item.get("call_id") not in ended)


def _codes(items: Sequence[Item], before: Sequence[Item]) -> tuple[HostedCodeResult, ...]:
    """The code of a response in order, each with the files that the messages after it cite."""
    programs = {item.get("call_id"): item for item in (*before, *items) if item.get("type") == "program"}
    codes: list[HostedCodeResult] = []
    for item in items:
        match item.get("type"):
            case "code_interpreter_call":
                codes.append(read_code(item))
            case "program_output":
                codes.append(read_program(programs.get(item.get("call_id"), {}), item))
            case "message":
                for part in items_of(item, "content"):
                    _attach(codes, _citations(part))
            case _:
                pass
    return tuple(codes)


def _attach(codes: list[HostedCodeResult], files: Sequence[FileRef]) -> None:
    """Give each file to the last code that ran where it lies."""
    for file in files:
        for place in reversed(range(len(codes))):
            if codes[place].call.container_id == file.container_id:
                codes[place] = replace(codes[place], files=(*codes[place].files, file))
                break


def _citations(part: Item) -> list[FileRef]:
    found: list[FileRef] = []
    for note in items_of(part, "annotations"):
        if note.get("type") == "container_file_citation":
            start, end = number_of(note, "start_index"), number_of(note, "end_index")
            found.append(
                FileRef(
                    provider="openai",
                    file_id=text_of(note, "file_id"),
                    container_id=text_of(note, "container_id") or None,
                    filename=text_of(note, "filename"),
                    span=None if start is None or end is None else (start, end),
                )
            )
    return found


def _call(item: Item) -> ProgrammaticCall:
    caller = item_of(item, "caller")
    try:
        arguments: Any = json.loads(text_of(item, "arguments") or "{}")
    except (ValueError, RecursionError):
        arguments = item.get("arguments")
    return ProgrammaticCall(
        call_id=text_of(item, "call_id"),
        tool=text_of(item, "name"),
        arguments=arguments,
        caller=text_of(caller, "type") or "direct",
        parent_code_call_id=text_of(caller, "caller_id"),
        raw_caller=caller or None,
    )


def _image(url: str, number: int) -> HostedImage:
    """A picture behind a URL, or in it."""
    head, comma, body = url.partition(",")
    if not url.startswith("data:") or not comma or not head.endswith(";base64"):
        return HostedImage(url=url)
    try:
        return picture(base64.b64decode(body, validate=True), head[5:-7], number)
    except binascii.Error:
        return HostedImage(url=url)


def _thoughts(items: Sequence[Item]) -> str:
    reasoning = [item for item in items if item.get("type") == "reasoning"]
    return "\n".join(text_of(part, "text") for item in reasoning for part in items_of(item, "summary"))


def _stop(response: Item, has_calls: bool) -> tuple[Stop, str]:
    status = text_of(response, "status")
    if status == "completed":
        return ("calls" if has_calls else "end"), "completed"
    if status == "incomplete":
        reason = text_of(item_of(response, "incomplete_details"), "reason") or "incomplete"
        return ("filtered" if reason == "content_filter" else "incomplete"), reason
    error = item_of(response, "error")
    return "failed", f"{text_of(error, 'code') or status}: {text_of(error, 'message') or 'no reason given'}"
