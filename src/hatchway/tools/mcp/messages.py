"""A server's lines as messages: half a character costs that character, an answer that is none fails its own call."""

from __future__ import annotations

import json
import re
from typing import Any, cast

from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter

_HEAD = 200
"""Bytes in which the id of a line stands that cannot be read to its end."""
_SHOWN = 120
_ANSWERED = re.compile(rb'^\s*\{(?=.*"jsonrpc").*?"id"\s*:\s*(\d{1,15})\b', re.S)
_HALVES = re.compile("[\ud800-\udfff]")
_INSTEAD = "\N{REPLACEMENT CHARACTER}"


def message_of(line: bytes) -> JSONRPCMessage | None:
    """The message in a line; where it cannot be read and says which call it answers, an error for that call.

    Servers that cut texts by length cut pairs of surrogates, too, and what they write then is no JSON to most readers.
    """
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    try:
        told = _whole(json.loads(line))
        return jsonrpc_message_adapter.validate_python(told, by_name=False)
    except (ValueError, RecursionError):
        return _refused(line)


def _refused(line: bytes) -> JSONRPCError | None:
    found = _ANSWERED.match(line[:_HEAD])
    if found is None or b'"method"' in line[:_HEAD]:
        return None
    shown = line[:_SHOWN].decode(errors="replace")
    told = ErrorData(code=PARSE_ERROR, message=f"the server's answer is none that can be read: {shown}")
    return JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=told)


def _whole(part: Any) -> Any:
    """The same without halves of characters."""
    if isinstance(part, str):
        return _HALVES.sub(_INSTEAD, part)
    if isinstance(part, dict):
        return {_whole(key): _whole(value) for key, value in cast(dict[str, Any], part).items()}
    return [_whole(item) for item in cast(list[Any], part)] if isinstance(part, list) else part
