"""CodeModeToolset: one tool for the model, which runs code; the wrapped tools are functions of that code."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired as AskPerson
from pydantic_ai.exceptions import ModelRetry, UserError
from pydantic_ai.tools import AgentDepsT, ToolDefinition
from pydantic_ai.toolsets import ToolsetTool, WrapperToolset
from pydantic_core import SchemaValidator, core_schema

from hatchway.adapters.pause_tokens import Pause, nonce_of
from hatchway.adapters.pydantic_ai.answers import failed, returned
from hatchway.adapters.pydantic_ai.deciding import (
    asked_before,
    decisions_of,
    pause_of,
    request_metadata,
)
from hatchway.adapters.pydantic_ai.desk import Desk, OpenMode
from hatchway.adapters.pydantic_ai.nested import dispatched
from hatchway.adapters.pydantic_ai.offer import Offer, offer
from hatchway.adapters.pydantic_ai.settings import CodeModeSettings
from hatchway.core.errors import ApprovalRequired, HatchwayError, InDoubt
from hatchway.core.results import ExecutionResult

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"code": {"type": "string", "description": "The Python to run."}},
    "required": ["code"],
    "additionalProperties": False,
}
# any object: approved arguments for a call inside the code come this way too; `code` itself is checked when it is run
_ANY_OBJECT = SchemaValidator(core_schema.dict_schema(keys_schema=core_schema.str_schema()))


@dataclass(kw_only=True)
class _CodeTool(ToolsetTool[AgentDepsT]):
    """The model's tool, with what the step it belongs to offers."""

    offered: Offer
    opened: OpenMode


@dataclass
class CodeModeToolset(CodeModeSettings, WrapperToolset[AgentDepsT]):
    """Gives the model one tool that runs Python in a sandbox; the wrapped toolset's tools are functions there.

    Each call the code makes goes through the agent's tool manager: validation, `requires_approval` and every
    capability's hooks hold. A call that must be approved pauses the code; the run ends with `DeferredToolRequests`, and
    `DeferredToolResults` go on at that call, with a journal in whatever process. `aclose` closes the sandbox; without
    it, it is closed with the event loop.
    """

    desk: Desk | None = field(default=None, repr=False, kw_only=True)
    """What copies of this toolset share; made by the first."""

    def __post_init__(self) -> None:
        if self.desk is None:
            self.check()
            self.desk = Desk(CodeModeSettings(**self.settings()))

    async def aclose(self) -> None:
        """Close the sandbox of this event loop; actions paused without a journal end."""
        assert self.desk is not None
        await self.desk.aclose()

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        """The one tool, and beside it those whose results come from outside the run."""
        assert self.desk is not None
        offered = offer(await self.wrapped.get_tools(ctx), ctx)
        if self.tool_name in offered.direct:
            raise UserError(f"a tool is named {self.tool_name!r} already: give CodeModeToolset another tool_name=")
        opened = await self.desk.mode_for(offered.key())
        definition = ToolDefinition(
            name=self.tool_name,
            description=opened.prompt.replace("`execute_code`", f"`{self.tool_name}`"),
            parameters_json_schema=SCHEMA,
            sequential=True,
            metadata={"code_arg_name": "code", "code_arg_language": "python"},
        )
        tool = _CodeTool(
            toolset=self, tool_def=definition, max_retries=self.max_retries, args_validator=_ANY_OBJECT,
            offered=offered, opened=opened,
        )  # fmt: skip
        return {**offered.direct, self.tool_name: tool}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        """Run the code, or go on with it."""
        if not isinstance(tool, _CodeTool):
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        assert self.desk is not None
        metadata = ctx.tool_call_metadata if ctx.tool_call_approved else None
        inner = replace(ctx, tool_call_approved=False, tool_call_metadata=None)
        dispatch = dispatched(inner, self.wrapped, tool.offered.called, asked_before(metadata))
        try:
            pause = pause_of(metadata, key=self.desk.key)
            if pause is None:
                result = await self._start(tool_args, ctx, tool.opened)
            else:
                result = await self._go_on(pause, metadata, tool_args, ctx, tool.opened)
        except (ApprovalRequired, InDoubt) as stop:
            if dispatch.exceeded is not None:
                raise dispatch.exceeded from None
            self.desk.waits(stop.run_id, tool.opened, str(self._model_args(ctx).get("code", "")))
            raise AskPerson(request_metadata(stop, dispatch.asked, key=self.desk.key)) from None
        except HatchwayError as e:
            raise dispatch.exceeded or failed(e) from e
        if dispatch.exceeded is not None:
            raise dispatch.exceeded
        return returned(result, dispatch.shown)

    async def _start(self, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], opened: OpenMode) -> ExecutionResult:
        code = tool_args.get("code")
        if not isinstance(code, str) or set(tool_args) != {"code"}:
            raise ModelRetry(f"{self.tool_name} takes one argument, `code`, which is text.")
        assert self.desk is not None
        if ctx.tool_call_approved and await self.desk.is_waiting(code, opened):  # never again from the start
            raise UserError(
                f"this {self.tool_name} call is paused: pass its metadata on, "
                "DeferredToolResults(approvals=…, metadata=requests.metadata), or use decided(requests, …)"
            )
        return await opened.run(code, self._session(ctx))

    async def _go_on(
        self, pause: Pause, metadata: Any, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], opened: OpenMode
    ) -> ExecutionResult:
        """Settle the calls of a pause and go on; a token that was used already settles nothing."""
        assert self.desk is not None
        try:
            return await self.desk.resume(opened, pause.run_id, {})  # it ended, or died on its way
        except (ApprovalRequired, InDoubt) as stop:
            if nonce_of(stop) != pause.nonce:
                raise
        edited = None if tool_args == self._model_args(ctx) else tool_args
        return await self.desk.resume(opened, pause.run_id, decisions_of(pause, metadata, edited))

    def _model_args(self, ctx: RunContext[AgentDepsT]) -> dict[str, Any]:
        """What the model gave; anything else in its place was given by a person, for the call inside."""
        for message in reversed(ctx.messages):
            for part in message.parts:
                if part.part_kind == "tool-call" and part.tool_call_id == ctx.tool_call_id:
                    return part.args_as_dict()
        return {}

    def _session(self, ctx: RunContext[AgentDepsT]) -> str | None:
        match self.state:
            case "none":
                return None
            case "run":
                return f"run {ctx.run_id}"
            case "conversation":
                return f"conversation {ctx.conversation_id}"
