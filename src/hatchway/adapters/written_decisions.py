"""Decisions as JSON: what a framework's state or request holds of them between two processes."""

from __future__ import annotations

from typing import Any, cast

from pydantic_core import from_json, to_json

from hatchway.core.decisions import Allow, Decision, Deny, Edit


def written(decision: Decision) -> dict[str, Any]:
    """The decision in JSON types."""
    match decision:
        case Allow():
            return {"kind": "allow"}
        case Edit(args=args):
            return {"kind": "edit", "args": jsonable(dict(args))}
        case Deny(reason=reason):
            return {"kind": "deny", "reason": reason}


def read(found: Any) -> Decision:
    """The decision that was written; one that cannot be read is a denial."""
    match found:
        case {"kind": "allow"}:
            return Allow()
        case {"kind": "edit", "args": args} if isinstance(args, dict):
            return Edit(cast(dict[str, Any], args))
        case {"kind": "deny", "reason": str(reason)}:
            return Deny(reason)
        case _:
            return Deny("the decision could not be read")


def jsonable(value: Any) -> Any:
    """Any value in JSON types; what has none of its own is shown as text."""
    return from_json(to_json(value, fallback=repr, inf_nan_mode="strings", bytes_mode="base64"))
