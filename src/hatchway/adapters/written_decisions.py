"""Decisions as JSON: what a framework's state or request holds of them between two processes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from hatchway.core.decisions import Allow, Deny, Edit, NotRun, Ran, Settlement
from hatchway.core.plain_json import jsonable


def written(decision: Settlement) -> dict[str, Any]:
    """The decision in JSON types."""
    match decision:
        case Allow():
            return {"kind": "allow"}
        case Edit(args=args):
            return {"kind": "edit", "args": jsonable(dict(args))}
        case Deny(reason=reason):
            return {"kind": "deny", "reason": reason}
        case Ran(value=value):
            return {"kind": "ran", "value": jsonable(value)}
        case NotRun():
            return {"kind": "not_run"}


def read(found: Any) -> Settlement:
    """The decision that was written; one that cannot be read is a denial."""
    match found:
        case {"kind": "allow"}:
            return Allow()
        case {"kind": "edit", "args": args} if isinstance(args, dict):
            return Edit(cast(dict[str, Any], args))
        case {"kind": "deny", "reason": str(reason)}:
            return Deny(reason)
        case {"kind": "ran"}:
            return Ran(cast(dict[str, Any], found).get("value"))
        case {"kind": "not_run"}:
            return NotRun()
        case _:
            return Deny("the decision could not be read")


def all_read(found: Any, calls: Iterable[str], unwritten: Settlement) -> dict[str, Settlement]:
    """The decision about each call.

    Args:
        found: Decisions by call, as they were written; None where none were.
        calls: The calls to decide.
        unwritten: Of all of them, where none were written. Where some were, a call without one is denied.
    """
    if found is None:
        return dict.fromkeys(calls, unwritten)
    told = cast(dict[Any, Any], found) if isinstance(found, dict) else {}
    return {call_id: read(told.get(call_id)) for call_id in calls}
