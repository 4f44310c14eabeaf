"""A vendor's whole response as the events of its stream, in the order the vendor sends them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hatchway.hosted.wire import item_of, items_of

Event = dict[str, Any]


def streamed(provider: str, response: Mapping[str, Any]) -> list[Event]:
    """The response as a stream."""
    return {"openai": _openai, "anthropic": _anthropic, "gemini": _gemini}[provider](dict(response))


def _openai(response: Event) -> list[Event]:
    begun: Event = {**response, "status": "in_progress", "output": []}
    events: list[Event] = [{"type": "response.created", "response": begun}]
    events.append({"type": "response.in_progress", "response": begun})
    for place, item in enumerate(items_of(response, "output")):
        events += _openai_item(place, item)
    ends = {"incomplete": "response.incomplete", "failed": "response.failed"}
    events.append({"type": ends.get(response.get("status", ""), "response.completed"), "response": response})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _openai_item(place: int, item: Event) -> list[Event]:
    where = {"item_id": item.get("id", ""), "output_index": place}
    events: list[Event] = [{"type": "response.output_item.added", "item": _openai_begun(item), "output_index": place}]
    if item.get("type") == "function_call":
        given, told = item.get("arguments") or "", "response.function_call_arguments"
        events += [{"type": f"{told}.delta", "delta": part, **where} for part in _parts(given)]
        events.append({"type": f"{told}.done", "arguments": given, "name": item.get("name"), **where})
    if item.get("type") == "code_interpreter_call":
        code, told = item.get("code") or "", "response.code_interpreter_call"
        events.append({"type": f"{told}.in_progress", **where})
        events += [{"type": f"{told}_code.delta", "delta": part, **where} for part in _parts(code)]
        events.append({"type": f"{told}_code.done", "code": code, **where})
        events += [{"type": f"{told}.interpreting", **where}, {"type": f"{told}.completed", **where}]
    if item.get("type") == "message":
        for number, part in enumerate(items_of(item, "content")):
            here = {**where, "content_index": number}
            events += [
                {"type": "response.output_text.delta", "delta": text, "logprobs": [], **here}
                for text in _parts(part.get("text", ""))
            ]
            for index, note in enumerate(items_of(part, "annotations")):
                kind = "response.output_text.annotation.added"
                events.append({"type": kind, "annotation": note, "annotation_index": index, **here})
    events.append({"type": "response.output_item.done", "item": item, "output_index": place})
    return events


def _openai_begun(item: Event) -> Event:
    """An item as it is told first: what is in it comes after."""
    empty: dict[str, Event] = {
        "code_interpreter_call": {"code": "", "outputs": None},
        "function_call": {"arguments": ""},
        "message": {"content": []},
    }
    kind = str(item.get("type"))
    return {**item, **empty[kind], "status": "in_progress"} if kind in empty else item


def _anthropic(response: Event) -> list[Event]:
    begun: Event = {**response, "content": [], "stop_reason": None, "container": None}
    events: list[Event] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for place, block in enumerate(items_of(response, "content")):
        events += _anthropic_block(place, block)
    delta = {name: response.get(name) for name in ("stop_reason", "stop_sequence", "container")}
    events.append({"type": "message_delta", "delta": delta, "usage": response.get("usage", {})})
    return [*events, {"type": "message_stop"}]


def _anthropic_block(place: int, block: Event) -> list[Event]:
    deltas: list[Event] = []
    start: Event = block
    match block.get("type"):
        case "text":
            start = {**block, "text": ""}
            deltas = [{"type": "text_delta", "text": text} for text in _parts(block["text"])]
        case "thinking":
            start = {**block, "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        case "tool_use" | "server_tool_use":
            start = {**block, "input": {}}
            told = json.dumps(block["input"])
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in _parts(told)]
        case _:
            pass
    return [
        {"type": "content_block_start", "index": place, "content_block": start},
        *({"type": "content_block_delta", "index": place, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": place},
    ]


def _gemini(response: Event) -> list[Event]:
    """One chunk for each part; the last has why it ended."""
    candidate = next(iter(items_of(response, "candidates")), Event())
    content = item_of(candidate, "content")
    parts = items_of(content, "parts")
    if len(parts) < 2:
        return [response]
    chunks: list[Event] = []
    for number, part in enumerate(parts, 1):
        told: Event = {"content": {**content, "parts": [part]}, "index": 0}
        if number == len(parts):
            told = {**candidate, **told}
        chunks.append({**response, "candidates": [told]})
    return chunks


def _parts(text: str) -> list[str]:
    """The text in two parts, so that whoever joins them shows it."""
    middle = len(text) // 2
    return [part for part in (text[:middle], text[middle:]) if part]
