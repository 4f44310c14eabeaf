"""Passage: the way of one call through the gate to its tool. Bound, validated, decided, run."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import Any, NamedTuple

from hatchway.core.calls import CallContext, FunctionCall, function_call
from hatchway.core.decisions import AskFirst, Edit
from hatchway.core.errors import ToolDenied, ToolError, described
from hatchway.core.loop_worker import StandIn
from hatchway.core.values import to_wire
from hatchway.gate.approval import Verdict, verdict
from hatchway.gate.rules import Rule
from hatchway.mode.overrun import Overrun
from hatchway.mode.threads import ToolThreads
from hatchway.tools.functions import Tool
from hatchway.tools.parameters import REQUIRED

_IN_COROUTINE = "coroutine raised StopIteration"
"""What Python makes of one that leaves an `async def`; the tool's own is its cause."""


class Admitted(NamedTuple):
    """A call that names a real tool, with arguments that fit it."""

    call: FunctionCall
    """Every argument by name, as the code gave it."""
    tool: Tool
    prepared: dict[str, Any] | None = None
    """What the function takes, where checking the arguments found it out on the way. Used once."""

    def digest(self) -> str:
        """A digest of exactly what would run."""
        return hashlib.sha256(to_wire([self.call.function_name, dict(self.call.kwargs)])).hexdigest()


class Passage:
    """What the calls of one mode pass: its tools, its rules, its threads."""

    def __init__(
        self, tools: Mapping[str, Tool], rules: Sequence[Rule], threads: ToolThreads, *, asks_all: bool
    ) -> None:
        self._tools = tools
        self._rules = tuple(rules)
        self._threads = threads
        self._asks_all = asks_all
        self._one_at_a_time = asyncio.Lock()
        self._overrun = Overrun()
        self._defaults = {name: _defaults(tool) for name, tool in tools.items()}
        alike = [tool for name, tool in tools.items() if not self._looks_at_args(name)]
        self._foregone = {tool.name: self._verdict(tool, {}) for tool in alike}

    def knows(self, name: str) -> bool:
        """Whether there is such a tool."""
        return name in self._tools

    def admit(self, call: FunctionCall) -> Admitted:
        """The call bound to its tool.

        Raises:
            ToolError: No such tool (close matches are named), or arguments that do not fit.
        """
        tool = self._tools.get(call.function_name)
        if tool is None:
            raise ToolError(self._no_such_tool(call.function_name))
        bound, prepared = tool.admit(call.args, call.kwargs)
        return Admitted(function_call(call.call_id, call.function_name, (), bound), tool, prepared)

    def verdict(self, admitted: Admitted) -> Verdict:
        """What tool and rules say, before anybody is asked."""
        known = self._foregone.get(admitted.call.function_name)
        return known or self._verdict(admitted.tool, admitted.call.kwargs)

    def arguments(self, admitted: Admitted) -> Mapping[str, Any]:
        """The call's arguments with the tool's defaults filled in, so that leaving one out hides nothing."""
        return {**self._defaults[admitted.tool.name], **admitted.call.kwargs}

    def _verdict(self, tool: Tool, arguments: Mapping[str, Any]) -> Verdict:
        everything = {**self._defaults[tool.name], **arguments}
        return verdict(
            tool.approval, self._rules, tool.name, everything, asks_all=self._asks_all, read_only=tool.read_only
        )

    def _looks_at_args(self, name: str) -> bool:
        """Whether a rule decides about calls of this tool by their arguments; otherwise all fare alike."""
        return any(rule.args and rule.names(name) for rule in self._rules)

    def edited(self, admitted: Admitted, edit: Edit) -> Admitted:
        """The call with other arguments, validated and checked like the first ones.

        Raises:
            ToolError: The new arguments do not fit.
            ToolDenied: A deny rule matches them.
        """
        bound, prepared = admitted.tool.admit((), edit.args)
        changed = Admitted(replace(admitted.call, kwargs=bound), admitted.tool, prepared)
        if (found := self.verdict(changed)).kind == "deny":
            raise ToolDenied(found.reason)
        return changed

    def run(self, admitted: Admitted, run_id: str, *, is_approved: bool = False) -> Coroutine[Any, Any, Any]:
        """What the tool returns, once awaited.

        Raises:
            ToolError: The tool raised, timed out or was cancelled.
            AskFirst: The tool wants somebody to allow the call first.
        """
        run = self._run_alone if admitted.tool.sequential else self._run
        return run(admitted, run_id, is_approved)

    async def _run_alone(self, admitted: Admitted, run_id: str, is_approved: bool) -> Any:
        async with self._one_at_a_time:
            await self._overrun.gone(admitted.tool)
            return await self._run(admitted, run_id, is_approved)

    async def _run(self, admitted: Admitted, run_id: str, is_approved: bool) -> Any:
        call, tool = admitted.call, admitted.tool
        arguments = tool.prepare(call.kwargs) if admitted.prepared is None else admitted.prepared
        if tool.takes_context:
            arguments[tool.takes_context] = _context(admitted, run_id, is_approved)
        deadline = None
        try:
            if tool.timeout is None:
                return await self._invoke(tool, arguments)
            async with asyncio.timeout(tool.timeout) as deadline:
                return await self._invoke(tool, arguments)
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            raise ToolError(f"the tool {tool.name} was cancelled") from None
        except TimeoutError as e:
            if deadline is not None and deadline.expired():
                raise ToolError(f"the tool {tool.name} took longer than {tool.timeout:g} s") from None
            raise _tool_failed(e) from e
        except (ToolError, AskFirst):
            raise
        except (KeyboardInterrupt, GeneratorExit):  # a person, or the loop that is closed: not the tool's own
            raise
        except BaseException as e:
            raise _tool_failed(e) from e

    def _invoke(self, tool: Tool, arguments: Mapping[str, Any]) -> Awaitable[Any]:
        return tool.func(**arguments) if tool.is_async else self._in_thread(tool, arguments)

    async def _in_thread(self, tool: Tool, arguments: Mapping[str, Any]) -> Any:
        function = partial(tool.func, **arguments)
        value: Any = await self._threads.run(self._overrun.watched(tool, function) if tool.sequential else function)
        is_awaitable = hasattr(value, "__await__")  # inspect's own look costs more than the call
        return await value if is_awaitable else value

    def _no_such_tool(self, name: str) -> str:
        close = get_close_matches(name, self._tools, n=3, cutoff=0.5)
        offer = f"did you mean {' or '.join(close)}?" if close else f"there are: {', '.join(self._tools) or 'none'}"
        return f"there is no tool {name}; {offer}"


def _defaults(tool: Tool) -> Mapping[str, Any]:
    return {taken.name: taken.default for taken in tool.takes if taken.default is not REQUIRED}


def _context(admitted: Admitted, run_id: str, is_approved: bool) -> CallContext:
    call_id, timeout = admitted.call.call_id, admitted.tool.timeout
    key = hashlib.sha256(f"{run_id}/{call_id}".encode()).hexdigest()[:32]
    deadline = None if timeout is None else time.monotonic() + timeout
    return CallContext(run_id=run_id, call_id=call_id, idempotency_key=key, deadline=deadline, approved=is_approved)


def _tool_failed(error: BaseException) -> ToolError:
    is_stand_in = isinstance(error, StandIn) or error.args == (_IN_COROUTINE,)
    shown = described(error.__cause__ if is_stand_in and error.__cause__ is not None else error)
    return ToolError(f"{shown['type']}: {shown['message']}" if shown["message"] else shown["type"])
