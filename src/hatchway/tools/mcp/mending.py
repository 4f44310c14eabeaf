"""Lists and results with mistakes in them: the SDK would refuse all for one, and here the rest stays."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self, cast

from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCResponse

_KINDS: dict[str, type] = {
    "annotations": dict,
    "description": str,
    "execution": dict,
    "outputSchema": dict,
    "title": str,
    "_meta": dict,
}
"""What a tool may say beside its name and arguments."""
_TASKS = ("forbidden", "optional", "required", None)
_CONTENT = frozenset(("audio", "image", "resource", "resource_link", "text"))
"""The kinds of content the SDK knows."""
_log = logging.getLogger("hatchway")


def mend(message: SessionMessage) -> None:
    """Leave out of a list of tools what is no tool, and of tools what is not what it should be; of a result, hand on
    content of unknown kinds as text, and structured content or a task that nothing else comes with."""
    if not isinstance(message.message, JSONRPCResponse):
        return
    result = message.message.result
    listed: Any = result.get("tools")
    if isinstance(listed, list):
        is_old = "resultType" not in result  # since then a result may be described by any schema
        result["tools"] = [tool for each in cast(list[Any], listed) if (tool := _mended(each, is_old)) is not None]
    if isinstance(parts := result.get("content"), list):
        result["content"] = [_known(part) for part in cast(list[Any], parts)]
    elif "structuredContent" in result or "task" in result:
        result["content"] = []


def _known(part: Any) -> Any:
    kind: Any = cast(dict[str, Any], part).get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str) or kind in _CONTENT:
        return cast(Any, part)
    return {"type": "text", "text": json.dumps(part)}


def _mended(told: Any, is_old: bool) -> dict[str, Any] | None:
    tool = cast(dict[str, Any], told) if isinstance(told, dict) else {}
    tool.pop("icons", None)  # nobody sees them here, and the SDK would refuse the list for a bad one
    if not isinstance(name := tool.get("name"), str):
        _log.warning("an MCP server lists something without a name; it is left out: %.100r", cast(object, told))
        return None
    wrong = [word for word, kind in _KINDS.items() if not isinstance(tool.get(word), kind | None)]
    if not _is_record(tool.get("inputSchema")):
        wrong.append("inputSchema")
    if is_old and tool.get("outputSchema") is not None and not _is_record(tool["outputSchema"]):
        wrong.append("outputSchema")
    if isinstance(runs := tool.get("execution"), dict) and cast(dict[str, Any], runs).get("taskSupport") not in _TASKS:
        wrong.append("execution")
    hints: dict[str, Any] = tool["annotations"] if isinstance(tool.get("annotations"), dict) else {}
    if not all(isinstance(hint, (str if word == "title" else bool) | None) for word, hint in hints.items()):
        wrong.append("annotations")  # which of them to believe is not ours to guess
    if not wrong:
        return tool
    _log.warning("tool %.100r of an MCP server is listed with an invalid %s", name, ", ".join(dict.fromkeys(wrong)))
    kept = {word: value for word, value in tool.items() if word not in wrong}
    return {"inputSchema": {"type": "object"}} | kept


def _is_record(schema: Any) -> bool:
    """Whether the SDK takes it for the schema of an object: it looks at four words, and at nothing below them."""
    if not isinstance(schema, dict):
        return False
    told = cast(dict[str, Any], schema)
    required: Any = told.get("required") or []
    properties: Any = told.get("properties") or {}
    return (
        told.get("type") == "object"
        and isinstance(told.get("$schema"), str | None)
        and isinstance(required, list)
        and all(isinstance(name, str) for name in cast(list[Any], required))
        and isinstance(properties, dict)
        and all(isinstance(each, dict | bool) for each in cast(dict[str, Any], properties).values())
    )


@asynccontextmanager
async def mended(transport: AbstractAsyncContextManager[Any]) -> AsyncGenerator[Any]:
    """A transport whose lists are mended."""
    async with transport as (answers, requests):
        yield _Mended(answers), requests


class _Mended:
    """The answers of a transport; what the SDK asks of it beside messages is passed on."""

    def __init__(self, answers: Any) -> None:
        self._answers = answers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._answers, name)

    async def __aenter__(self) -> Self:
        await self._answers.__aenter__()
        return self

    async def __aexit__(self, *ended: Any) -> None:
        await self._answers.__aexit__(*ended)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        message = await self._answers.__anext__()
        if isinstance(message, SessionMessage):
            mend(message)
        return message
