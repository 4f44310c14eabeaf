"""Calls that the code makes beside its channel, as through a proxy: one driver answers all, one gate sees all."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from hatchway.core.calls import FunctionCall
from hatchway.core.errors import ToolError

QUIET_SECONDS = 0.03
"""Code that burns nothing for so long while such a call is pending counts as waiting for it."""
LATER_SECONDS = 0.5
"""Between two looks at code that was quiet."""


class CallsBeside:
    """Those of one execution that have no answer yet.

    The guest says when it waits for answers on its channel; that it waits for one beside it has to be seen.

    Args:
        cpu_seconds: What the code has burnt.
        on_quiet: Called on the loop, again and again, while calls are pending and the code burns nothing.
    """

    def __init__(self, cpu_seconds: Callable[[], float], on_quiet: Callable[[], None]) -> None:
        self._cpu_seconds, self._on_quiet = cpu_seconds, on_quiet
        self._loop = asyncio.get_running_loop()
        self._made = 0
        self._secret = secrets.token_hex(4)
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._waiting

    def new(self, function_name: str, arguments: Mapping[str, Any]) -> tuple[FunctionCall, asyncio.Future[Any]]:
        """A call, by an id that the code cannot know and so cannot use for one of its own, and its answer to come."""
        self._made += 1
        call_id = f"beside-{self._made}-{self._secret}"
        answer = self._waiting[call_id] = self._loop.create_future()
        self._look_after(QUIET_SECONDS)
        return FunctionCall(call_id=call_id, function_name=function_name, kwargs=dict(arguments)), answer

    def answer(self, call_id: str, value: Any) -> None:
        """Hand the driver's answer, a value or an error, to whoever waits for it, if anybody still does."""
        waiting = self._waiting.pop(call_id)
        if self._waiting:
            self._look_after(QUIET_SECONDS)
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

    def _look_after(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self._look, self._cpu_seconds())

    def _look(self, cpu_before: float) -> None:
        self._timer = None
        if not self._waiting:
            return
        is_quiet = self._cpu_seconds() <= cpu_before
        if is_quiet:
            self._on_quiet()
        self._look_after(LATER_SECONDS if is_quiet else QUIET_SECONDS)
