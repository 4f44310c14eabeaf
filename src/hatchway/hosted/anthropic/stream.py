"""Anthropic's stream, put together again block by block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_core import from_json

from hatchway.core.errors import TransportError
from hatchway.core.events import AgentEvent, ResponseChunk, ThoughtsChunk
from hatchway.hosted.anthropic.reading import CALLS, RESULTS, code_uses, read_result, read_use
from hatchway.hosted.code import HostedCodeResult, Item
from hatchway.hosted.events import HostedCodeChunk, HostedCodeStarted, UnknownItem
from hatchway.hosted.vendor import Fold
from hatchway.hosted.wire import as_item, item_of, items_of, number_of, text_of

Facts = Sequence[AgentEvent | HostedCodeResult]


class AnthropicFold(Fold):
    """One stream of the Messages API."""

    def __init__(self) -> None:
        self._message: Item | None = None
        self._blocks: dict[int, Item] = {}
        self._inputs: dict[int, str] = {}
        self._shown: dict[int, int] = {}
        self._is_over = False

    def feed(self, event: Item) -> Facts:
        """Code, words and thoughts as they come; a piece of code once it runs, and once it ended."""
        place = number_of(event, "index") or 0
        match event.get("type"):
            case "message_start":
                self._message = item_of(event, "message")
            case "content_block_start":
                self._blocks[place] = item_of(event, "content_block")
            case "content_block_delta":
                return self._grown(place, item_of(event, "delta"))
            case "content_block_stop":
                return self._closed(place)
            case "message_delta" if self._message is not None:
                self._message |= {key: value for key, value in item_of(event, "delta").items() if value is not None}
                self._message["usage"] = {**item_of(self._message, "usage"), **item_of(event, "usage")}
            case "message_stop":
                self._is_over = True
            case "ping" | "message_delta":
                pass
            case kind:
                return [UnknownItem(str(kind))]
        return []

    def response(self) -> Item:
        """The message with its blocks."""
        if self._message is None or not self._is_over:
            raise TransportError("anthropic: the stream ended before the message did", hint="ask again")
        return {**self._message, "content": [self._blocks[place] for place in sorted(self._blocks)]}

    def _grown(self, place: int, delta: Item) -> Facts:
        block = self._blocks.setdefault(place, {})
        match delta.get("type"):
            case "text_delta":
                block["text"] = text_of(block, "text") + text_of(delta, "text")
                return [ResponseChunk(text_of(delta, "text"))]
            case "thinking_delta":
                block["thinking"] = text_of(block, "thinking") + text_of(delta, "thinking")
                return [ThoughtsChunk(text_of(delta, "thinking"))]
            case "signature_delta":
                block["signature"] = text_of(block, "signature") + text_of(delta, "signature")
            case "citations_delta":
                block["citations"] = [*items_of(block, "citations"), item_of(delta, "citation")]
            case "input_json_delta":
                self._inputs[place] = self._inputs.get(place, "") + text_of(delta, "partial_json")
                return self._written(place, block)
            case kind:
                return [UnknownItem(str(kind))]
        return []

    def _written(self, place: int, block: Item) -> Facts:
        """The code so far, out of JSON that is not whole yet."""
        if block.get("type") != "server_tool_use" or block.get("name") not in CALLS:
            return []
        try:
            so_far = as_item(from_json(self._inputs[place], allow_partial="trailing-strings"))
        except ValueError:
            return []
        code = text_of(so_far, "code") or text_of(so_far, "command")
        fresh = code[self._shown.get(place, 0) :]
        self._shown[place] = len(code)
        return [HostedCodeChunk(fresh, call_id=text_of(block, "id"))] if fresh else []

    def _closed(self, place: int) -> Facts:
        block = self._blocks.setdefault(place, {})
        if given := self._inputs.pop(place, ""):
            block["input"] = _parsed(given)
        if block.get("type") == "server_tool_use" and (language := CALLS.get(text_of(block, "name"))):
            return [HostedCodeStarted(read_use(block, language, None))]
        if block.get("type") not in RESULTS:
            return []
        use = code_uses([{"content": list(self._blocks.values())}]).get(text_of(block, "tool_use_id"))
        return (
            [] if use is None else [read_result(block, use, None)]
        )  # begun in an earlier message: told with the whole


def _parsed(text: str) -> Any:
    try:
        return from_json(text)
    except ValueError:
        return text
