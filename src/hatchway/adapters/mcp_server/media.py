"""Pictures and sound inside a value, as tools of MCP servers give them: sent to the client as what they are."""

from __future__ import annotations

from typing import Any, cast

from hatchway.core.results import ExecFile

_DEPTH = 6
"""How deep they are looked for."""
_KINDS = ("image", "audio")


def taken_out(value: Any) -> tuple[Any, list[ExecFile]]:
    """The value with each picture and sound replaced by a short text, and those, in their order."""
    found: list[ExecFile] = []
    return _without(value, found, _DEPTH), found


def _without(value: Any, found: list[ExecFile], depth: int) -> Any:
    if not depth:
        return value
    if isinstance(value, dict):
        told = cast(dict[Any, Any], value)
        medium = _medium(told)
        if medium is None:
            return {key: _without(part, found, depth - 1) for key, part in told.items()}
        found.append(medium)
        return f"<{medium.mime_type}, {medium.size} bytes>"
    if isinstance(value, list | tuple):
        parts = [_without(part, found, depth - 1) for part in cast(list[Any], value)]
        return parts if isinstance(value, list) else tuple(parts)
    return value


def _medium(told: dict[Any, Any]) -> ExecFile | None:
    kind, mime_type, data = (told.get(word) for word in ("type", "mime_type", "data"))
    if kind not in _KINDS or not isinstance(data, bytes) or not isinstance(mime_type, str):
        return None
    return ExecFile(name=kind, content=data, mime_type=mime_type) if mime_type.startswith(f"{kind}/") else None
