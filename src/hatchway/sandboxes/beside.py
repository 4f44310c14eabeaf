"""Calls that the code makes beside its channel, as through a proxy: one driver answers all, one gate sees all."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any

from hatchway.core.calls import FunctionCall
from hatchway.core.errors import ToolError


class CallsBeside:
    """Those of one execution that have no answer yet."""

    def __init__(self) -> None:
        self._made = 0
        self._secret = secrets.token_hex(4)
        self._waiting: dict[str, asyncio.Future[Any]] = {}

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._waiting

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def new(self, function_name: str, arguments: Mapping[str, Any]) -> tuple[FunctionCall, asyncio.Future[Any]]:
        """A call, by an id that the code cannot know and so cannot use for one of its own, and its answer to come."""
        self._made += 1
        call_id = f"beside-{self._made}-{self._secret}"
        answer = self._waiting[call_id] = asyncio.get_running_loop().create_future()
        return FunctionCall(call_id=call_id, function_name=function_name, kwargs=dict(arguments)), answer

    def answer(self, call_id: str, value: Any) -> None:
        """Hand the driver's answer, a value or an error, to whoever waits for it, if anybody still does."""
        waiting = self._waiting.pop(call_id)
        if waiting.done():
            return
        if isinstance(value, BaseException):
            waiting.set_exception(value if isinstance(value, ToolError) else ToolError(str(value)))
        else:
            waiting.set_result(value)

    def end(self) -> None:
        """The action is over: nobody will answer."""
        for waiting in self._waiting.values():
            waiting.cancel()
        self._waiting.clear()
