"""Nested calls: what the code calls goes through the framework's own tool manager, approvals and hooks included."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic import ValidationError
from pydantic_ai import RunContext
from pydantic_ai import ToolDenied as Denied
from pydantic_ai.capabilities import AbstractCapability, CombinedCapability
from pydantic_ai.exceptions import (
    ApprovalRequired,
    CallDeferred,
    ModelRetry,
    ToolFailed,
    ToolFailedError,
    ToolRetryError,
    UsageLimitExceeded,
)
from pydantic_ai.messages import ToolCallPart, ToolReturn, UserContent
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from hatchway.core.calls import CallContext
from hatchway.core.decisions import AskFirst
from hatchway.core.errors import ToolDenied, ToolError

_IDLE = {
    name: getattr(AbstractCapability, name)
    for name in (
        "before_tool_validate", "after_tool_validate", "wrap_tool_validate", "on_tool_validate_error",
        "before_tool_execute", "after_tool_execute", "wrap_tool_execute", "on_tool_execute_error",
        "handle_deferred_tool_calls",
    )
}  # fmt: skip
"""The hooks of a tool call, as a capability has them that does nothing there."""
_dispatch: ContextVar[Dispatch] = ContextVar("hatchway_pydantic_ai_dispatch")


@dataclass(slots=True)
class Dispatch:
    """The way out for the calls of one action."""

    manager: ToolManager[Any]
    parent: str
    """The id of the model's own call; ids of nested ones begin with it."""
    asked: dict[str, Any] = field(default_factory=dict[str, Any])
    """What a tool said when it asked to be approved, by call."""
    shown: list[UserContent] = field(default_factory=list[UserContent])
    """What tools showed to the model beside what they returned to the code."""
    exceeded: UsageLimitExceeded | None = None
    """Ends the run of the agent once the code is over, whatever the code made of it."""
    under_way: int = 0

    async def call(self, name: str, arguments: Mapping[str, Any], context: CallContext) -> Any:
        """What the tool returns.

        Raises:
            AskFirst: Somebody must approve it, and no handler did.
            ToolDenied: A handler said no.
            ToolError: The tool failed, refused its arguments, or is one call more than the run may make.
        """
        self.under_way += 1
        try:
            self._check_limit()
            return await self._handled(name, arguments, context)
        except UsageLimitExceeded as e:  # ours, or of an agent that is asked by the tool and counts with this run
            self.exceeded = e
            raise ToolError(str(e)) from e
        finally:
            self.under_way -= 1

    def _check_limit(self) -> None:
        """The framework counts a call when it is done, and checks those of the model only."""
        ctx = self.manager.ctx
        if ctx is None or ctx.usage_limits is None or ctx.usage_limits.tool_calls_limit is None:
            return
        after = replace(ctx.usage, tool_calls=ctx.usage.tool_calls + self.under_way + 1)  # and the code's own
        ctx.usage_limits.check_before_tool_call(after)

    async def _handled(self, name: str, arguments: Mapping[str, Any], context: CallContext) -> Any:
        part = ToolCallPart(name, dict(arguments), tool_call_id=f"{self.parent}__{context.call_id}")
        said = self.asked.get(context.call_id)
        try:
            result = await self.manager.handle_call(
                part, approved=context.approved, metadata=said, wrap_validation_errors=False
            )
        except ApprovalRequired as e:
            self.asked[context.call_id] = e.metadata
            raise AskFirst from e
        except CallDeferred as e:
            raise ToolError(
                f"the tool {name} gets its result from outside this run and cannot be called in code"
            ) from e
        except (ModelRetry, ToolFailed) as e:
            raise ToolError(e.message) from e
        except ToolRetryError as e:
            raise ToolError(str(e)) from e
        except ToolFailedError as e:
            raise ToolError(e.tool_failed.model_response_str()) from e
        except ValidationError as e:
            raise ToolError(f"{name}(): {_problems(e)}") from e
        if isinstance(result, Denied):
            raise ToolDenied(result.message)
        if not isinstance(result, ToolReturn):
            return result
        told = cast(ToolReturn[Any], result)
        self.shown += [told.content] if isinstance(told.content, str) else told.content or ()
        return told.return_value


async def call_nested(name: str, /, *, hatchway_call: CallContext, **arguments: Any) -> Any:
    """The function behind every tool: finds the action it is called from."""
    return await _dispatch.get().call(name, arguments, hatchway_call)


def dispatched(
    ctx: RunContext[Any], toolset: AbstractToolset[Any], tools: Mapping[str, ToolsetTool[Any]], asked: dict[str, Any]
) -> Dispatch:
    """Make the calls of this task's action go out here."""
    root = ctx.root_capability if ctx.tool_manager is None else ctx.tool_manager.root_capability
    if root is not None and not has_tool_hooks(root):
        root = None  # passing each call through hooks that do nothing takes longer than the call
    manager = ToolManager[Any](toolset=toolset, root_capability=root, ctx=ctx, tools=dict(tools))
    dispatch = Dispatch(manager, ctx.tool_call_id or "code", asked)
    _dispatch.set(dispatch)
    return dispatch


def has_tool_hooks(capability: AbstractCapability[Any]) -> bool:
    """Whether a capability, or one it is combined of, does anything when a tool is called."""
    if type(capability) is CombinedCapability:  # one derived from it may have hooks of its own
        return any(has_tool_hooks(each) for each in cast(CombinedCapability[Any], capability).capabilities)
    return any(getattr(getattr(capability, name), "__func__", None) is not idle for name, idle in _IDLE.items())


def _problems(error: ValidationError) -> str:
    told = [f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}" for each in error.errors()[:5]]
    return "; ".join(told)
