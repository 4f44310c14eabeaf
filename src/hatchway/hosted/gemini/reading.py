"""Reading Gemini's responses: every part, wherever it stands."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import replace

from hatchway.hosted.code import (
    Answer,
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

OWN = "own:"
"""Begins the ids we give where Gemini gives none."""
KNOWN = frozenset(
    {
        *("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode"),
        *("codeExecutionResult", "toolCall", "toolResponse"),
    }
)
"""What a part may hold; all of it is kept, what is about code is read."""
_ASIDE = frozenset({"thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"})
_OUTCOMES: dict[str, Status] = {
    "OUTCOME_OK": "ok",
    "OUTCOME_FAILED": "failed",
    "OUTCOME_DEADLINE_EXCEEDED": "timeout",
}
_FILTERED = frozenset(
    {
        *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"),
        *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
    }
)


def read_response(response: Item) -> Answer:
    """A whole response; its first candidate."""
    candidate = next(iter(items_of(response, "candidates")), Item())
    content = item_of(candidate, "content")
    parts = items_of(content, "parts")
    response_id = text_of(response, "responseId")
    calls = read_calls(parts, response_id)
    stop, reason = _stop(response, candidate, bool(calls))
    usage = item_of(response, "usageMetadata")
    return Answer(
        items=({"role": "model", **content},) if parts else (),
        stop=stop,
        reason=reason,
        said=tuple(
            None if "text" not in part else text_of(part, "text")
            for part in parts
            if not part.get("thought") and "inlineData" not in part
        ),
        thoughts="".join(text_of(part, "text") for part in parts if part.get("thought")),
        codes=read_codes(parts, response_id),
        calls=calls,
        images=_own_images(parts),
        unknown=_unknown(content, parts),
        response_id=response_id or None,
        model=text_of(response, "modelVersion"),
        input_tokens=number_of(usage, "promptTokenCount"),
        output_tokens=number_of(usage, "candidatesTokenCount"),
    )


def read_codes(parts: Sequence[Item], response_id: str) -> tuple[HostedCodeResult, ...]:
    """Code with its result and its pictures, by their ids or, where there are none, by their order."""
    codes: list[HostedCodeResult] = []
    for part in parts:
        if "executableCode" in part:
            codes.append(_begun(part, f"{OWN}{response_id}:{len(codes)}"))
        elif "codeExecutionResult" in part:
            _end(codes, item_of(part, "codeExecutionResult"), response_id)
        elif "inlineData" in part and codes:
            last = codes[-1]
            codes[-1] = replace(last, images=(*last.images, *_image(part, len(last.images) + 1)))
    return tuple(codes)


def read_calls(parts: Sequence[Item], response_id: str) -> tuple[ProgrammaticCall, ...]:
    """Calls to our functions; Gemini's model makes them itself, its code cannot."""
    found: list[ProgrammaticCall] = []
    for part in parts:
        if "functionCall" in part:
            call = item_of(part, "functionCall")
            call_id = text_of(call, "id") or f"{OWN}{response_id}:call-{len(found)}"
            arguments = call.get("args", {})
            found.append(ProgrammaticCall(call_id=call_id, tool=text_of(call, "name"), arguments=arguments))
    return tuple(found)


def _begun(part: Item, own_id: str) -> HostedCodeResult:
    told = item_of(part, "executableCode")
    signature = part.get("thoughtSignature")
    return HostedCodeResult(
        call=HostedCodeCall(
            provider="gemini", call_id=text_of(told, "id") or own_id, language="python", code=text_of(told, "code")
        ),
        status="interrupted",  # until its result is read
        opaque={"thoughtSignature": signature} if signature else {},
    )


def _end(codes: list[HostedCodeResult], told: Item, response_id: str) -> None:
    known = text_of(told, "id")
    places = [place for place, code in enumerate(codes) if code.call.call_id == known] or [len(codes) - 1]
    if places == [-1]:  # a result whose code came in an earlier response
        call = HostedCodeCall(provider="gemini", call_id=known or f"{OWN}{response_id}:0", language="python", code="")
        codes.append(HostedCodeResult(call=call, status="unknown"))
        places = [0]
    status = _OUTCOMES.get(text_of(told, "outcome"), "unknown")
    printed = text_of(told, "output")
    is_well = status in ("ok", "unknown")
    codes[places[0]] = replace(
        codes[places[0]],
        status=status,
        stdout=printed if is_well else None,
        stderr=None if is_well else printed,
        error_code="" if is_well else text_of(told, "outcome"),
    )


def _own_images(parts: Sequence[Item]) -> tuple[HostedImage, ...]:
    """The pictures before any code: the model's own, or of code in an earlier response."""
    is_code = ("executableCode" in part or "codeExecutionResult" in part for part in parts)
    first = next((place for place, is_it in enumerate(is_code) if is_it), len(parts))
    images: list[HostedImage] = []
    for part in parts[:first]:
        images += _image(part, len(images) + 1) if "inlineData" in part else ()
    return tuple(images)


def _image(part: Item, number: int) -> tuple[HostedImage, ...]:
    """The picture of a part; none where it cannot be read."""
    content = _bytes(part)
    return (picture(content, text_of(item_of(part, "inlineData"), "mimeType"), number),) if content else ()


def _bytes(part: Item) -> bytes:
    told = text_of(item_of(part, "inlineData"), "data")
    try:
        return base64.b64decode(told.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _unknown(content: Item, parts: Sequence[Item]) -> tuple[str, ...]:
    every = content.get("parts")
    strange = [key for part in parts for key in part if key not in KNOWN | _ASIDE]
    dropped = len(every) - len(parts) if isinstance(every, list) else 0  # pyright: ignore[reportUnknownArgumentType]
    unread = sum("inlineData" in part and not _bytes(part) for part in parts)
    return (*strange, *["part without content"] * dropped, *["inlineData that cannot be read"] * unread)


def _stop(response: Item, candidate: Item, has_calls: bool) -> tuple[Stop, str]:
    if not candidate:
        feedback = item_of(response, "promptFeedback")
        reason = text_of(feedback, "blockReason")
        return (
            ("filtered", f"{reason} {text_of(feedback, 'blockReasonMessage')}".strip())
            if reason
            else (
                "failed",
                f"no candidate in {json.dumps(response)[:200]}",
            )
        )
    reason = text_of(candidate, "finishReason")
    if reason == "STOP":
        return ("calls" if has_calls else "end"), reason
    if reason == "CONTINUATION":
        return "continue", reason
    return ("filtered" if reason in _FILTERED else "incomplete"), reason or "no finishReason"
