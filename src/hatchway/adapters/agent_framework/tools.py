"""The `execute_code` tools: what the model calls. Each sandbox has its own, to be used alone or by its provider."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from agent_framework import (
    AgentSession,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    FunctionTool,
    UserInputRequiredException,
)

from hatchway.adapters.agent_framework.contents import ResultForm, failure_contents, result_contents
from hatchway.adapters.agent_framework.environments import Environment, Environments, Setup
from hatchway.adapters.agent_framework.nested import Dispatch, Process
from hatchway.adapters.agent_framework.pauses import Answer, Pauses
from hatchway.adapters.agent_framework.registry import EXECUTE_CODE, Registry, Snapshot
from hatchway.core.errors import ApprovalRequired, HatchwayError, InvalidSetting
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult

if TYPE_CHECKING:
    from hatchway.journal.store import Journal

ApprovalMode = Literal["always_require", "never_require"]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "code": {
            "type": "string",
            "description": "Code to execute using the provider's configured backend/runtime behavior.",
        }
    },
    "required": ["code"],
}
_call_id: ContextVar[str] = ContextVar("hatchway_execute_code_call_id", default="")
_occurrence: ContextVar[str | None] = ContextVar("hatchway_execute_code_occurrence", default=None)


class Occurrences(FunctionMiddleware):
    """Tells `execute_code` which occurrence of the model's call it serves: the framework tells middleware alone."""

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Keep the id for the call inside."""
        token = _occurrence.set(context.metadata.get("function_call_occurrence_id"))
        try:
            await call_next()
        finally:
            _occurrence.reset(token)


class CodeTool(FunctionTool):
    """The model's tool for one snapshot of a registry."""

    def __init__(
        self,
        *,
        environments: Environments,
        snapshot: Snapshot,
        description: str,
        approval_mode: ApprovalMode,
        form: ResultForm,
        pauses: Pauses,
        middleware: Sequence[Process] = (),
    ) -> None:
        super().__init__(
            name=EXECUTE_CODE,
            description=description,
            approval_mode=approval_mode,
            func=self._execute,
            input_model=SCHEMA,
            additional_properties={},
        )
        self._environments, self._snapshot = environments, snapshot
        self._form: ResultForm = form
        self._pauses, self._middleware = pauses, middleware

    async def invoke(self, **given: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """As `FunctionTool.invoke`; the id of the call is kept for the calls inside it."""
        token = _call_id.set(given.get("tool_call_id") or "")
        try:
            return await super().invoke(**given)
        finally:
            _call_id.reset(token)

    async def _execute(self, code: str, ctx: FunctionInvocationContext) -> list[Content]:
        call_id = _call_id.get()
        Dispatch(
            tools={tool.name: tool for tool in self._snapshot.tools},
            session=ctx.session,
            kwargs={name: value for name, value in ctx.kwargs.items() if name != "session"},
            middleware=self._middleware,
            parent=call_id or EXECUTE_CODE,
            per_call=self._environments.setup.per_call,
        ).use()
        try:
            async with self._environments.use(self._snapshot) as environment:
                result = await self._run(environment, code, call_id, ctx.session)
        except HatchwayError as e:
            self._pauses.ended(call_id, ctx.session)
            return failure_contents(e, self._form)
        return result_contents(result, self._form)

    async def _run(
        self, environment: Environment, code: str, call_id: str, session: AgentSession | None
    ) -> ExecutionResult:
        pause = self._pauses.of(call_id, code, session)
        try:
            if pause is None:
                return await environment.mode.run(code)
            try:
                return await self._environments.resume(environment, pause.run_id, {})  # it ended, or died on its way
            except ApprovalRequired as paused:
                decisions = pause.decisions(paused.pending)
            return await self._environments.resume(environment, pause.run_id, decisions)
        except ApprovalRequired as paused:
            self._environments.waits(paused.run_id, environment)
            request = self._pauses.request(
                paused, call_id=call_id, occurrence=_occurrence.get(), code=code, session=session
            )
            raise UserInputRequiredException(contents=[request]) from None


class _Standing(CodeTool):
    """A tool that stands alone: it has a registry of its own, and tells everything in its description."""

    _sandbox: str
    _settings: tuple[str, ...] = ()

    def __init__(
        self,
        *,
        tools: Any = None,
        approval_mode: ApprovalMode | None = None,
        workspace_root: str | Path | None = None,
        file_mounts: Any = (),
        allowed_domains: Any = (),
        per_call_approval: bool = False,
        journal: str | PathLike[str] | Journal | None = None,
        limits: Limits | None = None,
        type_check: bool = True,
        result_form: ResultForm = "flat",
        **settings: Any,
    ) -> None:
        if unknown := set(settings) - set(self._settings):
            raise TypeError(f"{type(self).__name__} takes no {', '.join(sorted(unknown))}")
        registry = Registry(tools, file_mounts or (), allowed_domains or (), workspace_root)
        snapshot = registry.snapshot()
        setup = made_setup(
            self._sandbox, settings, limits=limits, journal=journal, type_check=type_check, per_call=per_call_approval
        )
        environments = Environments(setup)
        super().__init__(
            environments=environments,
            snapshot=snapshot,
            description=environments.describe(snapshot),
            approval_mode=effective_approval(approval_mode, snapshot, per_call=per_call_approval),
            form=result_form,
            pauses=Pauses(f"{self._sandbox}_execute_code"),
        )

    def decide(
        self, request: Content, answers: Mapping[str, Answer] | Answer, *, session: AgentSession | None = None
    ) -> Content:
        """The response that answers a paused action call by call; see `docs/agent-framework.md`."""
        return self._pauses.decide(request, answers, session)

    async def aclose(self) -> None:
        """Close the sandbox of this event loop."""
        await self._environments.aclose()


class MontyExecuteCodeTool(_Standing):
    """`execute_code` in Monty, for `Agent(tools=[…])`."""

    _sandbox = "monty"


class JailExecuteCodeTool(_Standing):
    """`execute_code` in the jail, for `Agent(tools=[…])`."""

    _sandbox = "jail"


class ContainerExecuteCodeTool(_Standing):
    """`execute_code` in a container, for `Agent(tools=[…])`; `image=` names its image."""

    _sandbox = "container"
    _settings = ("image",)


class HyperlightExecuteCodeTool(_Standing):
    """`execute_code` in a Hyperlight micro-VM, for `Agent(tools=[…])`."""

    _sandbox = "hyperlight"
    _settings = ("backend", "module", "module_path")


def made_setup(sandbox: str, settings: Mapping[str, Any], **common: Any) -> Setup:
    """The setup for a sandbox; what was not given is left to it."""
    return Setup(sandbox=sandbox, settings={k: v for k, v in settings.items() if v is not None}, **common)


def effective_approval(given: str | None, snapshot: Snapshot, *, per_call: bool) -> ApprovalMode:
    """Whether `execute_code` itself must be approved.

    Raises:
        InvalidSetting: A word the framework would take for "never".
    """
    mode = given or "never_require"
    if mode not in ("always_require", "never_require"):
        raise InvalidSetting(f"approval_mode is 'always_require' or 'never_require', not {mode!r}")
    if unknown := [tool for tool in snapshot.tools if tool.approval_mode not in ("always_require", "never_require")]:
        word = cast(Any, unknown[0]).approval_mode
        raise InvalidSetting(f"the tool {unknown[0].name!r} has the unknown approval_mode {word!r}")
    escalates = snapshot.needs_approval and not per_call
    return "always_require" if mode == "always_require" or escalates else "never_require"
