"""What a scripted vendor says, in words that are the same for all three: text, code it ran, calls to your tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hatchway.core.errors import InvalidSetting

Item = dict[str, Any]
CODE_ID = "code_1"
"""Of code whose end comes in a later response."""
CONTAINER = "cntr_1"


@dataclass(frozen=True, slots=True)
class RanCode:
    """Python the vendor ran itself."""

    code: str
    output: str = ""
    """What it printed; of code that failed, what went wrong."""
    failed: bool = field(default=False, kw_only=True)
    files: Mapping[str, str] = field(default_factory=dict[str, str], kw_only=True)
    """Files it made, by id, with their names; `ScriptedVendor(files=…)` has what is in them. Not at Gemini."""


@dataclass(frozen=True, slots=True)
class CallsTool:
    """A call to one of your tools."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    call_id: str = field(default="", kw_only=True)
    by: str | None = field(default=None, kw_only=True)
    """The code that calls; `CodeEnded` in the next response ends it. None: the model itself calls. Not at Gemini."""


@dataclass(frozen=True, slots=True)
class CodeEnded:
    """The end of code that called tools, in the response after their results."""

    output: str = ""


Piece = str | RanCode | CallsTool | CodeEnded | Mapping[str, Any]
"""Text, or one of these; a mapping is an item of the vendor's own form, sent as it is."""
Stop = Literal["end", "filtered", "cut"]


class VendorSays:
    """One response of a scripted vendor, whichever it is.

    Args:
        pieces: What is in it, in order.
        stop: Why it ends: it is done (or waits for its calls), it was filtered, or it was cut short by a limit.
    """

    def __init__(self, *pieces: Piece, stop: Stop = "end") -> None:
        self.pieces = pieces
        self.stop: Stop = stop

    @property
    def files(self) -> dict[str, str]:
        """The names of all files its code made, by id."""
        return {key: name for piece in self.pieces if isinstance(piece, RanCode) for key, name in piece.files.items()}

    def response(self, provider: str) -> Item:
        """As the vendor sends it.

        Raises:
            InvalidSetting: The vendor has nothing like it.
        """
        items = [item for number, piece in enumerate(self.pieces, 1) for item in _WRITERS[provider](piece, number)]
        return _RESPONSES[provider](
            _begun_once(items), self.stop, any(isinstance(piece, CallsTool) for piece in self.pieces)
        )


def _openai(piece: Piece, number: int) -> Sequence[Item]:
    match piece:
        case str():
            return [_openai_message(piece, [])]
        case RanCode():
            code = {
                "type": "code_interpreter_call",
                "id": f"ci_{number}",
                "code": piece.code,
                "container_id": CONTAINER,
            }
            status = "failed" if piece.failed else "completed"
            ran = {**code, "status": status, "outputs": [{"type": "logs", "logs": piece.output}]}
            cited = [
                {"type": "container_file_citation", "container_id": CONTAINER, "file_id": file_id, "filename": name,
                 "start_index": 0, "end_index": 0}
                for file_id, name in piece.files.items()
            ]  # fmt: skip
            return [ran, _openai_message("", cited)] if cited else [ran]
        case CallsTool():
            call_id = piece.call_id or f"call_{number}"
            call = {"type": "function_call", "id": f"fc_{number}", "call_id": call_id, "name": piece.name}
            call |= {"arguments": json.dumps(dict(piece.arguments)), "status": "completed"}
            if piece.by is None:
                return [call]
            program = {"type": "program", "id": "p_1", "call_id": CODE_ID, "code": piece.by, "fingerprint": "fp"}
            return [program, {**call, "caller": {"type": "program", "caller_id": CODE_ID}}]
        case CodeEnded():
            told = {"type": "program_output", "id": f"po_{number}", "call_id": CODE_ID, "status": "completed"}
            return [{**told, "result": piece.output}]
        case _:
            return [dict(piece)]


def _openai_message(text: str, notes: Sequence[Item]) -> Item:
    part = {"type": "output_text", "text": text, "annotations": list(notes)}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}


def _openai_response(items: Sequence[Item], stop: Stop, has_calls: bool) -> Item:
    reasons = {"filtered": "content_filter", "cut": "max_output_tokens"}
    told: Item = {"id": "resp_1", "object": "response", "created_at": 1, "model": "scripted", "output": list(items)}
    told |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "completed"}
    told["usage"] = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    if stop != "end":
        told |= {"status": "incomplete", "incomplete_details": {"reason": reasons[stop]}}
    return told


def _anthropic(piece: Piece, number: int) -> Sequence[Item]:
    match piece:
        case str():
            return [{"type": "text", "text": piece}]
        case RanCode():
            code_id = f"srv_{number}"
            return [_anthropic_use(code_id, piece.code), _anthropic_end(code_id, piece)]
        case CallsTool():
            call: Item = {"type": "tool_use", "id": piece.call_id or f"call_{number}", "name": piece.name}
            call["input"] = dict(piece.arguments)
            if piece.by is None:
                return [call]
            caller = {"type": "code_execution_20260120", "tool_id": CODE_ID}
            return [_anthropic_use(CODE_ID, piece.by), {**call, "caller": caller}]
        case CodeEnded():
            return [_anthropic_end(CODE_ID, RanCode("", piece.output))]
        case _:
            return [dict(piece)]


def _anthropic_use(code_id: str, code: str) -> Item:
    return {"type": "server_tool_use", "id": code_id, "name": "code_execution", "input": {"code": code}}


def _anthropic_end(code_id: str, ran: RanCode) -> Item:
    streams = {"stdout": "", "stderr": ran.output} if ran.failed else {"stdout": ran.output, "stderr": ""}
    made = [{"type": "code_execution_output", "file_id": file_id} for file_id in ran.files]
    content = {"type": "code_execution_result", **streams, "return_code": int(ran.failed), "content": made}
    return {"type": "code_execution_tool_result", "tool_use_id": code_id, "content": content}


def _anthropic_response(items: Sequence[Item], stop: Stop, has_calls: bool) -> Item:
    reason = {"filtered": "refusal", "cut": "max_tokens"}.get(stop, "tool_use" if has_calls else "end_turn")
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": list(items),
        "stop_reason": reason, "stop_sequence": None, "usage": {"input_tokens": 7, "output_tokens": 3},
        "container": {"id": CONTAINER, "expires_at": "2030-01-01T00:00:00Z"},
    }  # fmt: skip


def _gemini(piece: Piece, number: int) -> Sequence[Item]:
    match piece:
        case str():
            return [{"text": piece}]
        case RanCode() if not piece.files:
            outcome = "OUTCOME_FAILED" if piece.failed else "OUTCOME_OK"
            return [
                {"executableCode": {"code": piece.code, "language": "PYTHON"}},
                {"codeExecutionResult": {"outcome": outcome, "output": piece.output}},
            ]
        case CallsTool(by=None):
            call = {"name": piece.name, "args": dict(piece.arguments)}
            return [{"functionCall": {**call, **({"id": piece.call_id} if piece.call_id else {})}}]
        case Mapping():
            return [dict(piece)]
        case _:
            raise InvalidSetting(f"code at gemini has no such thing: {piece}")


def _gemini_response(items: Sequence[Item], stop: Stop, has_calls: bool) -> Item:
    reason = {"filtered": "SAFETY", "cut": "MAX_TOKENS"}.get(stop, "STOP")
    candidate = {"content": {"role": "model", "parts": list(items)}, "finishReason": reason, "index": 0}
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 3}
    return {"candidates": [candidate], "modelVersion": "scripted", "responseId": "r_1", "usageMetadata": usage}


def _begun_once(items: Sequence[Item]) -> list[Item]:
    """Several calls of one piece of code: it begins once."""
    begins = [item for item in items if item.get("type") in ("program", "server_tool_use")]
    return [item for place, item in enumerate(items) if item not in begins or item not in items[:place]]


_WRITERS = {"openai": _openai, "anthropic": _anthropic, "gemini": _gemini}
_RESPONSES = {"openai": _openai_response, "anthropic": _anthropic_response, "gemini": _gemini_response}
