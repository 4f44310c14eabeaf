"""Nested calls: what the code calls is invoked as the framework would, with its session, middleware and spans."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from agent_framework import (
    AgentSession,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    FunctionTool,
    MiddlewareBundle,
    MiddlewareTermination,
    MiddlewareType,
)

from hatchway.adapters.agent_framework.own_tools import CALL, OwnTool
from hatchway.core.calls import CallContext
from hatchway.core.decisions import AskFirst
from hatchway.core.errors import HatchwayError, InvalidSetting, InvalidTool, ToolError
from hatchway.tools.function_arguments import result_schema
from hatchway.tools.functions import Tool
from hatchway.tools.naming import check_name
from hatchway.tools.signatures import read_callable

CALL_TOOL = "call_tool"
Process = Callable[[FunctionInvocationContext, Callable[[], Awaitable[None]]], Awaitable[None]]
"""What a function middleware does."""
_dispatch: ContextVar[Dispatch] = ContextVar("hatchway_agent_framework_dispatch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """The way out for the calls of one action."""

    tools: Mapping[str, FunctionTool]
    typed: Mapping[str, Tool]
    """The same tools as the code has them."""
    session: AgentSession | None
    kwargs: Mapping[str, Any]
    """What the run was given for its tools."""
    middleware: Sequence[Process]
    parent: str
    """The id of the model's own call; ids of nested ones begin with it."""
    per_call: bool
    """Whether tools that require approval are asked about call by call."""

    def use(self) -> None:
        """Make the calls of this task's action go out here."""
        _dispatch.set(self)

    async def call(self, name: str, arguments: Mapping[str, Any], call: CallContext) -> Any:
        """What the tool returns; what it raises is told to the code."""
        tool = self.tools.get(name)
        if tool is None:
            raise ToolError(f"there is no tool {name!r}; there are: {', '.join(self.tools) or 'none'}")
        if self.per_call and tool.approval_mode == "always_require" and not call.approved:
            raise AskFirst
        context = FunctionInvocationContext(
            function=tool, arguments=dict(arguments), session=self.session, kwargs=dict(self.kwargs)
        )
        context.metadata[CALL] = call
        context.metadata["call_id"] = call_id = f"{self.parent}__{call.call_id}"

        async def invoke() -> None:
            context.result = await tool.invoke(
                arguments=context.arguments, context=context, tool_call_id=call_id, skip_parsing=True
            )

        step = invoke
        for process in reversed(self.middleware):
            step = partial(process, context, step)
        try:
            await step()
        except MiddlewareTermination as e:
            return _plain(e.result if e.result is not None else context.result)
        return _plain(context.result)


async def call_nested(name: str, /, *, hatchway_call: CallContext, **arguments: Any) -> Any:
    """The function behind every typed tool: finds the action it is called from."""
    return await _dispatch.get().call(name, arguments, hatchway_call)


async def call_tool(tool_name: str, /, *, hatchway_call: CallContext, **arguments: Any) -> Any:
    """Call a function by its name, such as call_tool("name", a=1)."""
    dispatch = _dispatch.get()
    if (tool := dispatch.typed.get(tool_name)) is not None:
        arguments = tool.bind((), arguments)
    return await dispatch.call(tool_name, arguments, hatchway_call)


def code_tools(tools: Sequence[FunctionTool], *, per_call: bool) -> list[Tool]:
    """The tools as the code has them: each as a typed function, and all by `call_tool`."""
    made: list[Tool] = []
    taken = {CALL_TOOL}
    for tool in tools:
        made.append(code_tool(tool, taken, per_call=per_call))
        taken.add(made[-1].name)
    return [*made, Tool.from_function(call_tool)] if made else []


def code_tool(tool: FunctionTool, taken: Set[str] = frozenset(), *, per_call: bool = False) -> Tool:
    """One tool as a typed function, under a name that is not taken."""
    asks = per_call and tool.approval_mode == "always_require"
    own = tool.own if isinstance(tool, OwnTool) else None
    kept = {} if own is None else {name: getattr(own, name) for name in ("idempotent", "sequential", "timeout")}
    return Tool(
        name=_code_name(tool.name, taken),
        description=tool.description or "",
        parameters=tool.parameters(),
        returns=_returns(tool) if own is None else own.returns,
        func=partial(call_nested, tool.name),
        approval="ask" if asks else "allow",
        takes_context="hatchway_call",
        **kept,
    )


def processes(middleware: Sequence[Any]) -> list[Process]:
    """The function middleware among an agent's middleware, as functions.

    Raises:
        InvalidSetting: A bundle, into which nobody but the framework can look: nested calls would pass it by.
    """
    found: list[Process] = []
    for each in middleware:
        if isinstance(each, MiddlewareBundle):
            raise InvalidSetting(
                f"calls inside the code cannot pass {each!r}, whose middleware only the framework can see",
                hint="give the tools to the agent, or give it the function middleware outside of the bundle",
            )
        if isinstance(each, FunctionMiddleware):
            found.append(each.process)
        elif callable(each) and _is_for_functions(each):
            found.append(cast(Process, each))
    return found


def _is_for_functions(middleware: Callable[..., Any]) -> bool:
    """As the framework finds it out: by its decorator, or by what it takes first."""
    if (marked := getattr(middleware, "_middleware_type", None)) is not None:
        return marked == MiddlewareType.FUNCTION
    try:
        first = next(iter(inspect.signature(middleware).parameters.values()), None)
    except (TypeError, ValueError):
        return False
    hint = None if first is None else first.annotation
    name = hint.strip(" '\"").rpartition(".")[2] if isinstance(hint, str) else getattr(hint, "__name__", None)
    return name == FunctionInvocationContext.__name__


def _code_name(name: str, taken: Set[str]) -> str:
    written = re.sub(r"\W", "_", name)
    try:
        check_name(written)
    except InvalidTool:
        written = f"tool_{written.strip('_')}"
    while written in taken:
        written += "_"
    return written


def _returns(tool: FunctionTool) -> dict[str, Any] | None:
    try:
        return result_schema(read_callable(cast(Any, tool.func)).gives) if tool.func is not None else None
    except (HatchwayError, TypeError, ValueError):
        return None


def _plain(value: Any) -> Any:
    """A result the code can hold: the framework's contents become text, or their fields."""
    if isinstance(value, Content):
        return value.text if value.type == "text" else value.to_dict()
    if isinstance(value, list | tuple) and any(isinstance(item, Content) for item in cast(list[Any], value)):
        items = [_plain(item) for item in cast(list[Any], value)]
        return items[0] if len(items) == 1 and isinstance(items[0], str) else items  # what an MCP server mostly gives
    return cast(Any, value)
