"""Writing OpenAI's requests, and a history without a container that is gone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from hatchway.hosted.code import Item
from hatchway.hosted.containers import AutoContainerConfig, ExistingContainerRef
from hatchway.hosted.openai.reading import read_code
from hatchway.hosted.openai.tool import OpenAICodeInterpreterTool
from hatchway.hosted.vendor import Answered, Ask, Offer
from hatchway.hosted.wire import items_of, text_of

INCLUDE = "code_interpreter_call.outputs"
"""Without it the outputs of code come back as null."""


def write_request(ask: Ask) -> dict[str, Any]:
    """The arguments of `responses.create`."""
    request: dict[str, Any] = {**ask.settings, "model": ask.model, "input": list(ask.history)}
    if tools := [*_tools(ask), *ask.settings.get("tools", ())]:
        request["tools"] = tools
    if ask.offer.code is not None:
        request["include"] = [*dict.fromkeys([*request.get("include", ()), INCLUDE])]
    if ask.instructions:
        request["instructions"] = ask.instructions
    if ask.tool_choice is not None:
        request["tool_choice"] = _choice(ask.tool_choice, ask.offer)
    if ask.max_output_tokens is not None:
        request["max_output_tokens"] = ask.max_output_tokens
    if ask.output_schema is not None:
        schema = {"type": "json_schema", "name": "answer", "schema": dict(ask.output_schema), "strict": True}
        request["text"] = {**request.get("text", {}), "format": schema}
    return request


def write_answers(answers: Sequence[Answered], offer: Offer) -> list[Item]:
    """`function_call_output` items; the caller goes back as it came."""
    written: list[Item] = []
    for answer in answers:
        is_error_in_code = answer.is_error and answer.call.is_from_code
        output = json.dumps({"error": answer.content}) if is_error_in_code else answer.content
        item: Item = {"type": "function_call_output", "call_id": answer.call.call_id, "output": output}
        if answer.call.raw_caller is not None:
            item["caller"] = answer.call.raw_caller
        written.append(item)
    return written


def without_container(history: Sequence[Item]) -> list[Item]:
    """The history with code calls told as words: an item that names a container which is gone is refused for ever."""
    cleaned: list[Item] = []
    has_thoughts = any(item.get("type") == "reasoning" for item in history)
    for item in history:
        match item.get("type"):
            case "code_interpreter_call":
                cleaned.append(_retold(item))
            case "reasoning":
                continue  # it is bound to the very item that followed it
            case "message" if item.get("role") == "assistant":
                said = _without_citations(item)
                cleaned.append(_as_words(said) if has_thoughts else said)
            case "function_call" if has_thoughts:  # by its id the vendor would miss the thoughts before it
                cleaned.append({name: value for name, value in item.items() if name != "id"})
            case _:
                cleaned.append(item)
    return cleaned


def _retold(item: Item) -> Item:
    code = read_code(item)
    text = f"I ran this in a container that is gone now, with its files:\n```python\n{code.call.code}\n```\n"
    text += f"It printed:\n{code.text}" if code.text else "It printed nothing."
    return {"role": "assistant", "content": text}


def _as_words(item: Item) -> Item:
    """A message without its id, by which the vendor would miss the thoughts before it."""
    parts = items_of(item, "content")
    words = "".join(text_of(part, "text") or text_of(part, "refusal") for part in parts)
    phase = {"phase": item["phase"]} if item.get("phase") else {}  # without it the model does worse
    return {"role": "assistant", "content": words, **phase}


def _without_citations(item: Item) -> Item:
    parts: list[Item] = []
    for part in items_of(item, "content"):
        notes = [note for note in items_of(part, "annotations") if note.get("type") != "container_file_citation"]
        parts.append({**part, "annotations": notes} if "annotations" in part else part)
    return {**item, "content": parts}


def _tools(ask: Ask) -> list[Item]:
    offer = ask.offer
    tools: list[Item] = []
    code = cast("OpenAICodeInterpreterTool | None", offer.code)
    if code is not None:
        tools.append({**code.declaration(), "container": _container(ask)})
    if offer.from_code or (code is not None and "programmatic" in code.allowed_callers):
        tools.append({"type": "programmatic_tool_calling"})
    for name, tool in offer.tools.items():
        callers = [
            word for word, those in (("direct", offer.direct), ("programmatic", offer.from_code)) if name in those
        ]
        told: Item = {
            "type": "function",
            "name": name,
            "description": tool.description,
            "parameters": tool.parameters,
            "strict": False,  # our schemas are checked by our gate
        }
        if callers != ["direct"]:
            told["allowed_callers"] = callers
        if tool.returns is not None:
            told["output_schema"] = tool.returns
        tools.append(told)
    return tools


def _container(ask: Ask) -> Any:
    if ask.container is not None:
        return ask.container.id
    config = cast(OpenAICodeInterpreterTool, ask.offer.code).container
    if isinstance(config, ExistingContainerRef) and config.id in ask.lost:
        return AutoContainerConfig(memory_limit=config.memory_limit or "1g").payload()
    return config.payload()


def _choice(word: str, offer: Offer) -> Any:
    if word in ("auto", "none", "required"):
        return word
    if offer.code is not None and word == offer.code.name:
        return {"type": "code_interpreter"}  # "required" would force some tool, not this one
    if word not in offer.direct:
        return {"type": "programmatic_tool_calling"}
    return {"type": "function", "name": word}
