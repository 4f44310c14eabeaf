"""Reading Anthropic's messages: every block, wherever it stands."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hatchway.hosted.code import (
    Answer,
    ContainerRef,
    FileRef,
    HostedCodeCall,
    HostedCodeResult,
    Item,
    Language,
    ProgrammaticCall,
    Status,
    Stop,
)
from hatchway.hosted.wire import item_of, items_of, number_of, text_of

KNOWN = frozenset(
    {
        *("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "container_upload"),
        *("code_execution_tool_result", "bash_code_execution_tool_result", "text_editor_code_execution_tool_result"),
        *("web_search_tool_result", "web_fetch_tool_result", "tool_search_tool_result", "mcp_tool_use"),
        *("mcp_tool_result",),
    }
)
"""Kinds of blocks the SDK of today knows; all of them are kept, those about code are read."""
RESULTS: dict[str, Language] = {
    "code_execution_tool_result": "python",
    "bash_code_execution_tool_result": "bash",
    "text_editor_code_execution_tool_result": "file_edit",
}
"""Blocks that tell how code ended, and in what it was written."""
CALLS: dict[str, Language] = {
    "code_execution": "python",
    "bash_code_execution": "bash",
    "text_editor_code_execution": "file_edit",
}
"""Names of `server_tool_use` blocks that run code, and in what it is written."""
_ERRORS: dict[str, Status] = {
    "execution_time_exceeded": "timeout",
    "unavailable": "unavailable",
    "too_many_requests": "unavailable",
}
_STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "calls",
    "pause_turn": "continue",
    "refusal": "filtered",
}


def read_message(message: Item, before: Sequence[Item]) -> Answer:
    """A whole message."""
    blocks = items_of(message, "content")
    container = item_of(message, "container")
    uses = code_uses([*before, {"content": blocks}])
    container_id = text_of(container, "id") or None
    codes = tuple(
        read_result(block, uses.get(text_of(block, "tool_use_id"), {}), container_id)
        for block in blocks
        if block.get("type") in RESULTS
    )
    calls = tuple(_call(block) for block in blocks if block.get("type") == "tool_use")
    reason = text_of(message, "stop_reason")
    stop = _STOPS.get(reason, "incomplete")
    usage = item_of(message, "usage")
    return Answer(
        items=({"role": "assistant", "content": blocks},) if blocks else (),
        stop="incomplete" if stop == "calls" and not calls else stop,
        reason=reason or "no stop_reason",
        said=tuple(
            text_of(block, "text") if block.get("type") == "text" else None
            for block in blocks
            if block.get("type") not in ("thinking", "redacted_thinking")
        ),
        thoughts="\n".join(text_of(block, "thinking") for block in blocks if block.get("type") == "thinking"),
        codes=codes,
        begun=_begun(blocks, container_id),
        calls=calls if stop == "calls" else (),
        citations=tuple(file for code in codes for file in code.files),
        container=_container(container),
        unknown=tuple(kind for block in blocks if (kind := str(block.get("type"))) not in KNOWN),
        response_id=text_of(message, "id") or None,
        model=text_of(message, "model"),
        input_tokens=number_of(usage, "input_tokens"),
        output_tokens=number_of(usage, "output_tokens"),
    )


def _begun(blocks: Sequence[Item], container_id: str | None) -> tuple[HostedCodeCall, ...]:
    """Code that waits for what it called."""
    ended = {text_of(block, "tool_use_id") for block in blocks if block.get("type") in RESULTS}
    return tuple(
        read_use(block, CALLS[text_of(block, "name")], container_id)
        for block in blocks
        if block.get("type") == "server_tool_use" and block.get("name") in CALLS and text_of(block, "id") not in ended
    )


def code_uses(messages: Sequence[Item]) -> dict[str, Item]:
    """The blocks that began code, by id: a result may come many messages later."""
    blocks = (block for message in messages for block in items_of(message, "content"))
    return {text_of(block, "id"): block for block in blocks if block.get("type") == "server_tool_use"}


def read_use(use: Item, language: Language, container_id: str | None) -> HostedCodeCall:
    """A block that began code."""
    return HostedCodeCall(
        provider="anthropic",
        call_id=text_of(use, "id"),
        language=language,
        code=_code(use, language),
        container_id=container_id,
        caller=text_of(item_of(use, "caller"), "type") or "direct",
    )


def read_result(block: Item, use: Item, container_id: str | None) -> HostedCodeResult:
    """A result block and the block that began its code."""
    language = RESULTS[text_of(block, "type")]
    call = read_use({**use, "id": text_of(block, "tool_use_id")}, language, container_id)
    content = item_of(block, "content")
    kind = text_of(content, "type")
    if kind.endswith("_error"):
        error = text_of(content, "error_code")
        message = text_of(content, "error_message") or None
        return HostedCodeResult(call=call, status=_ERRORS.get(error, "failed"), error_code=error, stderr=message)
    if language == "file_edit":
        return HostedCodeResult(call=call, status="ok", stdout=_edited(content))
    exit_code = number_of(content, "return_code")
    is_secret = kind == "encrypted_code_execution_result"
    return HostedCodeResult(
        call=call,
        status="unknown" if exit_code is None else "ok" if exit_code == 0 else "failed",
        stdout=None if is_secret else text_of(content, "stdout"),
        stderr=text_of(content, "stderr"),
        exit_code=exit_code,
        files=tuple(
            FileRef(provider="anthropic", file_id=text_of(output, "file_id"), container_id=container_id)
            for output in items_of(content, "content")
            if text_of(output, "file_id")
        ),
        opaque={"encrypted_stdout": content.get("encrypted_stdout")} if is_secret else {},
    )


def _code(use: Item, language: Language) -> str:
    given = item_of(use, "input")
    match language:
        case "python":
            return text_of(given, "code")
        case "bash":
            return text_of(given, "command")
        case _:
            return json.dumps(given)


def _edited(content: Item) -> str:
    """What a change or a look at a file shows."""
    if isinstance(content.get("content"), str):
        return text_of(content, "content")
    lines = content.get("lines")
    return "\n".join(map(str, lines)) if isinstance(lines, list) else ""  # pyright: ignore[reportUnknownArgumentType]


def _call(block: Item) -> ProgrammaticCall:
    caller = item_of(block, "caller")
    return ProgrammaticCall(
        call_id=text_of(block, "id"),
        tool=text_of(block, "name"),
        arguments=block.get("input"),
        caller=text_of(caller, "type") or "direct",
        parent_code_call_id=text_of(caller, "tool_id"),
        raw_caller=caller or None,
    )


def _container(told: Item) -> ContainerRef | None:
    known = text_of(told, "id")
    return ContainerRef(id=known, expires_at=text_of(told, "expires_at") or None) if known else None
