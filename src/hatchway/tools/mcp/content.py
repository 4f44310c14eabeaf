"""What a server answered as a value of the code: text, data, pictures, resources; plain data for every wall."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, cast

from hatchway.core.errors import ToolError

WRAPPED = "result"
"""The one key servers put a value under that is no object, because MCP wants an object."""


def value_of(result: Mapping[str, Any], *, is_wrapped: bool) -> Any:
    """The value of a `tools/call` result, as it came over the wire.

    Structured content where there is some; else the one part of the content, or the list of its parts. Text is a str,
    pictures, sound and resources are dicts with `mime_type` and `data` (bytes) or `text`.

    Args:
        result: The result by its names on the wire.
        is_wrapped: Its structured content is one value under `result`.

    Raises:
        ToolError: The server says that the call failed.
    """
    parts = [_part(each) for each in cast(list[dict[str, Any]], result.get("content") or [])]
    if result.get("isError"):
        said = "\n".join(part for part in parts if isinstance(part, str)).strip()
        raise ToolError(said or "the server says that the call failed, and nothing else")
    structured = result.get("structuredContent")
    if structured is not None and not (any(not isinstance(part, str) for part in parts) and not is_wrapped):
        return structured[WRAPPED] if is_wrapped and WRAPPED in structured else structured
    if structured is not None:
        return [structured, *(part for part in parts if not isinstance(part, str))]
    return parts[0] if len(parts) == 1 else parts or None


def is_wrapped(output_schema: Any) -> bool:
    """Whether an output schema only wraps a value that is no object under `result`."""
    if not isinstance(output_schema, dict):
        return False
    schema = cast(dict[str, Any], output_schema)
    properties: Any = schema.get("properties")
    if not isinstance(properties, dict) or list(cast(dict[str, Any], properties)) != [WRAPPED]:
        return False
    title = schema.get("title")
    return schema.get("x-fastmcp-wrap-result") is True or (isinstance(title, str) and title.endswith("Output"))


def unwrapped(output_schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of the value itself."""
    inner = dict(output_schema["properties"][WRAPPED]) if output_schema["properties"][WRAPPED] is not True else {}
    kept = {word: output_schema[word] for word in ("$defs", "definitions") if word in output_schema}
    return {**inner, **kept}


def _part(block: Mapping[str, Any]) -> Any:
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "image" | "audio" as kind:
            return {"type": kind, "mime_type": block.get("mimeType"), "data": _decoded(block.get("data"))}
        case "resource":
            held: Mapping[str, Any] = block.get("resource") or {}
            told = {"type": "resource", "uri": held.get("uri"), "mime_type": held.get("mimeType")}
            return told | ({"data": _decoded(held["blob"])} if "blob" in held else {"text": held.get("text", "")})
        case "resource_link":
            names = {"uri": "uri", "name": "name", "description": "description", "mime_type": "mimeType"}
            return {"type": "resource_link"} | {ours: block.get(theirs) for ours, theirs in names.items()}
        case _:
            return dict(block)


def _decoded(data: Any) -> bytes:
    try:
        return base64.b64decode(data or "", validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise ToolError("the server sent a picture, sound or file that is no base64") from None
