"""OpenAI's stream, put together again: the last event has the whole response."""

from __future__ import annotations

from collections.abc import Sequence

from hatchway.core.errors import TransportError
from hatchway.core.events import AgentEvent, ResponseChunk, ThoughtsChunk
from hatchway.hosted.code import HostedCodeResult, Item
from hatchway.hosted.events import HostedCodeChunk, HostedCodeStarted, UnknownItem
from hatchway.hosted.openai.reading import read_code
from hatchway.hosted.vendor import Fold
from hatchway.hosted.wire import item_of, number_of, text_of

_STEPS = {
    "": "created queued in_progress",
    "audio": "delta done",
    "audio.transcript": "delta done",
    "code_interpreter_call": "in_progress completed",
    "compaction": "compacting",
    "content_part": "added done",
    "custom_tool_call_input": "delta done",
    "file_search_call": "in_progress searching completed",
    "function_call_arguments": "delta done",
    "image_generation_call": "in_progress generating partial_image completed",
    "mcp_call": "in_progress completed failed",
    "mcp_call_arguments": "delta done",
    "mcp_list_tools": "in_progress completed failed",
    "output_text": "done",
    "output_text.annotation": "added",
    "reasoning_summary_part": "added done",
    "reasoning_summary_text": "done",
    "reasoning_text": "done",
    "refusal": "delta done",
    "shell_call_command": "added delta done",
    "shell_call_output_content": "delta done",
    "web_search_call": "in_progress searching completed",
}
PASSED = frozenset(
    ".".join(filter(None, ("response", about, step))) for about, steps in _STEPS.items() for step in steps.split()
)
"""Kinds of events the SDK of today knows and nothing is told of: what they bring is in the whole response."""


class OpenAIFold(Fold):
    """One stream of the Responses API."""

    def __init__(self) -> None:
        self._whole: Item | None = None
        self._items: dict[int, Item] = {}
        self._begun: dict[str, Item] = {}
        """Code by the id of its item, as far as it is known."""

    def feed(self, event: Item) -> Sequence[AgentEvent | HostedCodeResult]:
        """Code, words and thoughts as they come; a piece of code once it runs, and once it ended."""
        match event.get("type"):
            case "response.output_item.added":
                item = item_of(event, "item")
                self._begun[text_of(item, "id")] = item
            case "response.code_interpreter_call_code.done":
                self._begun[text_of(event, "item_id")] = {**self._known(event), "code": text_of(event, "code")}
            case "response.code_interpreter_call.interpreting":
                return [HostedCodeStarted(read_code(self._known(event)).call)]
            case "response.code_interpreter_call_code.delta":
                return [HostedCodeChunk(text_of(event, "delta"), call_id=text_of(event, "item_id"))]
            case "response.output_text.delta":
                return [ResponseChunk(text_of(event, "delta"))]
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return [ThoughtsChunk(text_of(event, "delta"))]
            case "response.output_item.done":
                return self._done(event)
            case "response.completed" | "response.incomplete" | "response.failed":
                self._whole = item_of(event, "response")
            case kind if kind not in PASSED:
                return [UnknownItem(str(kind))]
            case _:
                pass
        return []

    def response(self) -> Item:
        """The response of the last event; items told on the way are put in where it has none."""
        if self._whole is None:
            raise TransportError("openai: the stream ended before the response did", hint="ask again")
        if not self._whole.get("output") and self._items:
            return {**self._whole, "output": [self._items[place] for place in sorted(self._items)]}
        return self._whole

    def _known(self, event: Item) -> Item:
        item_id = text_of(event, "item_id")
        return {**self._begun.get(item_id, {}), "id": item_id}

    def _done(self, event: Item) -> Sequence[HostedCodeResult]:
        item = item_of(event, "item")
        self._items[number_of(event, "output_index") or 0] = item
        return [read_code(item)] if item.get("type") == "code_interpreter_call" else []
