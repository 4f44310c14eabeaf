"""Writing Anthropic's requests, and a history without a container that is gone."""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from typing import Any, cast

from hatchway.hosted.anthropic.reading import CALLS, RESULTS, code_uses, read_result, read_use
from hatchway.hosted.anthropic.tool import AnthropicCodeExecutionTool
from hatchway.hosted.code import HostedCodeResult, Item
from hatchway.hosted.vendor import Answered, Ask, Offer
from hatchway.hosted.wire import item_of, items_of, text_of

DEFAULT_TOKENS = 8192
"""Of a response; the API wants a number."""


def write_request(ask: Ask) -> dict[str, Any]:
    """The arguments of `messages.create`."""
    request: dict[str, Any] = {
        **ask.settings,
        "model": ask.model,
        "messages": [message for each in ask.history if (message := _with_words(each))["content"]],
        "max_tokens": ask.max_output_tokens or DEFAULT_TOKENS,
    }
    if tools := [*_tools(ask.offer), *ask.settings.get("tools", ())]:
        request["tools"] = tools
    if (container := _container(ask)) is not None:
        request["container"] = container
    if ask.instructions:
        request["system"] = ask.instructions
    if ask.tool_choice is not None:
        words = {"auto": "auto", "none": "none", "required": "any"}
        word = words.get(ask.tool_choice)
        request["tool_choice"] = {"type": word} if word else {"type": "tool", "name": ask.tool_choice}
    if ask.output_schema is not None:
        schema = {"type": "json_schema", "schema": dict(ask.output_schema)}
        request["output_config"] = {**request.get("output_config", {}), "format": schema}
    return request


def _with_words(message: Item) -> Item:
    """The vendor sends texts without words, and refuses to have them back."""
    blocks = [block for block in items_of(message, "content") if _says_something(block)]
    return {**message, "content": blocks}


def _says_something(block: Item) -> bool:
    return block.get("type") != "text" or bool(text_of(block, "text").strip())


def write_answers(answers: Sequence[Answered]) -> list[Item]:
    """A user's message with the results, and nothing else in it: code that waits takes no words."""
    blocks: list[Item] = []
    for answer in answers:
        block: Item = {"type": "tool_result", "tool_use_id": answer.call.call_id, "content": answer.content}
        blocks.append({**block, "is_error": True} if answer.is_error else block)
    return [{"role": "user", "content": blocks}]


def without_container(history: Sequence[Item]) -> list[Item]:
    """The history with code, and the calls it made, told as words; what people and the model said stays."""
    uses = code_uses(history)
    ended = {text_of(block, "tool_use_id") for message in history for block in items_of(message, "content")}
    from_code = {
        text_of(block, "id")
        for message in history
        for block in items_of(message, "content")
        if block.get("type") == "tool_use" and (text_of(item_of(block, "caller"), "type") or "direct") != "direct"
    }
    cleaned: list[Item] = []
    for message in history:
        blocks = [kept for block in items_of(message, "content") for kept in _kept(block, uses, ended, from_code)]
        results_first = sorted(blocks, key=lambda block: block.get("type") != "tool_result")  # no words before them
        if blocks:
            cleaned.append({**message, "content": results_first})
    return cleaned


def said_files(history: Sequence[Item]) -> set[str]:
    """Ids of the files messages upload into a container."""
    blocks = [block for message in history for block in items_of(message, "content")]
    return {text_of(block, "file_id") for block in blocks if block.get("type") == "container_upload"}


def without_files(history: Sequence[Item], file_ids: Set[str]) -> list[Item]:
    """The history without the blocks that upload these files."""
    return [
        {**message, "content": [block for block in items_of(message, "content") if not _uploads(block, file_ids)]}
        if said_files([message]) & file_ids
        else message
        for message in history
    ]


def _uploads(block: Item, file_ids: Set[str]) -> bool:
    return block.get("type") == "container_upload" and text_of(block, "file_id") in file_ids


def _kept(block: Item, uses: dict[str, Item], ended: set[str], from_code: set[str]) -> list[Item]:
    kind = text_of(block, "type")
    if kind in ("container_upload", "thinking", "redacted_thinking"):
        return []
    if kind == "server_tool_use" and block.get("name") in CALLS:
        if text_of(block, "id") in ended:
            return []  # its result tells of it
        code = read_use(block, CALLS[text_of(block, "name")], None).code
        return _words(f"I began this in a container that is gone now; it did not end:\n{code}")
    if kind in RESULTS:
        code = read_result(block, uses.get(text_of(block, "tool_use_id"), {}), None)
        printed = f"It printed:\n{code.text}" if code.text else _ending(code)
        return _words(f"I ran this in a container that is gone now, with its files:\n{code.call.code}\n{printed}")
    if kind == "tool_use" and text_of(block, "id") in from_code:
        return _words(f"It called {text_of(block, 'name')}({json.dumps(block.get('input'))}).")
    if kind == "tool_result" and text_of(block, "tool_use_id") in from_code:
        return _words(f"That call was made and gave: {block.get('content')}")
    return [block]


def _ending(code: HostedCodeResult) -> str:
    """How code ended that shows no output."""
    if code.error_code:
        return f"It failed: {code.error_code}."
    return "What it printed is not known any more." if code.opaque else "It printed nothing."


def _words(text: str) -> list[Item]:
    return [{"type": "text", "text": text}]


def _tools(offer: Offer) -> list[Item]:
    tools: list[Item] = []
    code = cast("AnthropicCodeExecutionTool | None", offer.code)
    if code is not None:
        tools.append(code.declaration())
    for name, tool in offer.tools.items():
        told: Item = {"name": name, "description": tool.description, "input_schema": tool.parameters}
        if code is not None and name in offer.from_code:
            told["allowed_callers"] = [*(["direct"] if name in offer.direct else []), code.version]
        tools.append(told)
    return tools


def _container(ask: Ask) -> Any:
    code = cast("AnthropicCodeExecutionTool | None", ask.offer.code)
    if code is None:
        return None
    known = ask.container.id if ask.container is not None else code.container
    known = None if known in ask.lost else known
    if not code.skills:
        return known
    return {**({"id": known} if known else {}), "skills": list(code.skills)}
