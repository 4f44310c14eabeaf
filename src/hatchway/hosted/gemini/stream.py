"""Gemini's stream, put together again: each chunk is a response with a few parts."""

from __future__ import annotations

from collections.abc import Sequence

from hatchway.core.errors import TransportError
from hatchway.core.events import AgentEvent, ResponseChunk, ThoughtsChunk
from hatchway.hosted.code import HostedCodeResult, Item
from hatchway.hosted.events import HostedCodeChunk, HostedCodeStarted
from hatchway.hosted.gemini.reading import read_codes
from hatchway.hosted.vendor import Fold
from hatchway.hosted.wire import item_of, items_of, text_of


class GeminiFold(Fold):
    """One stream of `streamGenerateContent`."""

    def __init__(self) -> None:
        self._whole: Item = {}
        self._candidate: Item = {}
        self._parts: list[Item] = []
        self._told = 0
        self._begun = 0

    def feed(self, event: Item) -> Sequence[AgentEvent | HostedCodeResult]:
        """Code, words and thoughts as they come; a piece of code once something else follows it."""
        candidate = next(iter(items_of(event, "candidates")), Item())
        self._whole |= {key: value for key, value in event.items() if key != "candidates"}
        self._candidate |= {key: value for key, value in candidate.items() if key != "content"}
        content = item_of(candidate, "content")
        every = content.get("parts")
        self._parts += every if isinstance(every, list) else []  # empty ones too: the SDK dropped what was in them
        facts: list[AgentEvent | HostedCodeResult] = []
        for part in items_of(content, "parts"):
            if "inlineData" not in part and "codeExecutionResult" not in part:
                facts += self._ended()
            facts += _chunk(part)
            if text_of(item_of(part, "executableCode"), "code"):
                facts.append(self._started())
        return facts

    def rest(self) -> Sequence[HostedCodeResult]:
        """Code that was waiting for pictures."""
        return self._ended()

    def response(self) -> Item:
        """One response with all parts."""
        is_blocked = item_of(self._whole, "promptFeedback").get("blockReason")
        if not is_blocked and not text_of(self._candidate, "finishReason"):
            raise TransportError("gemini: the stream ended before the response did", hint="ask again")
        if is_blocked and not self._candidate:
            return self._whole
        content = {"role": "model", "parts": self._parts}
        return {**self._whole, "candidates": [{**self._candidate, "content": content}]}

    def _started(self) -> HostedCodeStarted:
        """The next piece of code: it came whole, and runs."""
        codes = read_codes(self._parts, text_of(self._whole, "responseId"))
        self._begun += 1
        return HostedCodeStarted([code.call for code in codes if code.call.code][self._begun - 1])

    def _ended(self) -> list[HostedCodeResult]:
        """Code that has its result and all its pictures."""
        codes = read_codes(self._parts, text_of(self._whole, "responseId"))
        done = [code for code in codes[self._told :] if code.status != "interrupted"]
        self._told += len(done)
        return done


def _chunk(part: Item) -> list[AgentEvent]:
    if text := text_of(part, "text"):
        return [ThoughtsChunk(text) if part.get("thought") else ResponseChunk(text)]
    if "executableCode" in part:
        return [HostedCodeChunk(text_of(item_of(part, "executableCode"), "code"))]
    return []
