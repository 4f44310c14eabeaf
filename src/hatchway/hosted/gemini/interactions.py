"""Gemini's Interactions: the code among their steps, read. The adapter itself speaks `generateContent`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hatchway.hosted.code import HostedCodeCall, HostedCodeResult, Item
from hatchway.hosted.wire import as_item, item_of, text_of


def read_steps(steps: Iterable[Any]) -> tuple[HostedCodeResult, ...]:
    """The code of an interaction, in order.

    Args:
        steps: `interaction.steps`, as the SDK's objects or as JSON. Signatures are in `opaque`; a result whose call is
            not among them has no code.
    """
    items = [_as_json(step) for step in steps]
    calls = {place: item for place, item in enumerate(items) if item.get("type") == "code_execution_call"}
    codes: dict[int, HostedCodeResult] = {place: _ended(call, None) for place, call in calls.items()}
    waiting = dict(calls)
    for place, item in enumerate(items):
        if item.get("type") == "code_execution_result":
            its_id = text_of(item, "call_id")
            # a result whose call is in no step (it came earlier) stands for itself
            found = next((at for at, call in waiting.items() if text_of(call, "id") == its_id), place)
            codes[found] = _ended(waiting.pop(found, {"id": its_id}), item)
    return tuple(codes[place] for place in sorted(codes))


def _ended(call: Item, result: Item | None) -> HostedCodeResult:
    code = text_of(item_of(call, "arguments"), "code")
    told = HostedCodeCall(provider="gemini", call_id=text_of(call, "id"), language="python", code=code)
    if result is None:
        return HostedCodeResult(call=told, status="interrupted", opaque=_signatures(call, {}))
    printed, is_error = text_of(result, "result"), result.get("is_error")
    return HostedCodeResult(
        call=told,
        status="failed" if is_error is True else "ok" if is_error is False else "unknown",
        stdout=None if is_error else printed,
        stderr=printed if is_error else None,
        opaque=_signatures(call, result),
    )


def _signatures(call: Item, result: Item) -> Item:
    found = {"call_signature": call.get("signature"), "result_signature": result.get("signature")}
    return {name: value for name, value in found.items() if value is not None}


def _as_json(step: Any) -> Item:
    return as_item(step) or as_item(step.model_dump(mode="json", by_alias=True, exclude_none=True))
