"""Writing Gemini's requests, as the JSON the API takes: the SDK's own types drop what they do not know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hatchway.core.errors import InvalidSetting
from hatchway.hosted.code import Item
from hatchway.hosted.gemini.reading import OWN
from hatchway.hosted.vendor import Answered, Ask, Offer
from hatchway.hosted.wire import items_of

BESIDE = frozenset(
    {"safetySettings", "labels", "cachedContent", "serviceTier", "store", "modelArmorConfig", "continuationToken"}
)
"""Settings that stand beside those of the generation."""


def write_request(ask: Ask) -> dict[str, Any]:
    """The model, and the body of `generateContent`."""
    body: Item = {"contents": [content for each in ask.history if (content := _filled(each))["parts"]]}
    body |= {name: value for name, value in ask.settings.items() if name in BESIDE}
    if tools := [*_tools(ask.offer), *ask.settings.get("tools", ())]:
        body["tools"] = tools
    if ask.instructions:
        body["systemInstruction"] = {"parts": [{"text": ask.instructions}]}
    if ask.tool_choice is not None:
        body["toolConfig"] = {"functionCallingConfig": _choice(ask.tool_choice, ask.offer)}
    generation: Item = {name: value for name, value in ask.settings.items() if name not in (*BESIDE, "tools")}
    if ask.max_output_tokens is not None:
        generation["maxOutputTokens"] = ask.max_output_tokens
    if ask.output_schema is not None:
        generation |= {"responseMimeType": "application/json", "responseJsonSchema": dict(ask.output_schema)}
    if generation:
        body["generationConfig"] = generation
    return {"model": ask.model, "body": body}


def _filled(content: Item) -> Item:
    """Without parts the SDK emptied in a stream: the vendor refuses them, and with them all that is said later."""
    return {**content, "parts": items_of(content, "parts")}


def write_answers(answers: Sequence[Answered]) -> list[Item]:
    """A user's content with the responses of our functions."""
    parts: list[Item] = []
    for answer in answers:
        told: Item = {"name": answer.call.tool, "response": {"error" if answer.is_error else "result": answer.content}}
        if not answer.call.call_id.startswith(OWN):
            told["id"] = answer.call.call_id
        parts.append({"functionResponse": told})
    return [{"role": "user", "parts": parts}]


def _tools(offer: Offer) -> list[Item]:
    tools: list[Item] = [{"codeExecution": {}}] if offer.code is not None else []
    if offer.direct:
        told = [
            {"name": name, "description": tool.description, "parametersJsonSchema": tool.parameters}
            for name, tool in offer.direct.items()
        ]
        tools.append({"functionDeclarations": told})
    return tools


def _choice(word: str, offer: Offer) -> Item:
    if offer.code is not None and word == offer.code.name:
        raise InvalidSetting("Gemini cannot be made to run code", hint="ask for it in the instructions")
    modes = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
    return {"mode": modes[word]} if word in modes else {"mode": "ANY", "allowedFunctionNames": [word]}
