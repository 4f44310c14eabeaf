"""The `execute_code` tools: what the model calls. Each sandbox has its own, to be used alone or by its provider."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Unpack

from agent_framework import (
    AgentSession,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    FunctionTool,
    UserInputRequiredException,
)

from hatchway.adapters.agent_framework.contents import ResultForm, failure_contents, result_contents
from hatchway.adapters.agent_framework.environments import Environment, Environments, made_setup
from hatchway.adapters.agent_framework.nested import Dispatch, Process
from hatchway.adapters.agent_framework.options import ApprovalMode, Options, complete, effective_approval, spelled_out
from hatchway.adapters.agent_framework.pauses import Answer, Pauses, decisions_of
from hatchway.adapters.agent_framework.registry import EXECUTE_CODE, Registry, Snapshot
from hatchway.adapters.pause_tokens import Pause
from hatchway.core.errors import (
    ApprovalRequired,
    CheckpointRefused,
    HatchwayError,
    InDoubt,
    InvalidSetting,
    InvalidTool,
)
from hatchway.core.results import ExecutionResult

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
UNTOLD = "per_call_approval of a tool that stands alone needs the tool's middleware on the agent"
_invocation: ContextVar[Invocation] = ContextVar("hatchway_execute_code_invocation")


class Approvals(FunctionMiddleware):
    """Passes every call on. Of an agent with middleware the framework tells a tool which call it serves, and what was
    approved; without any it does not.
    """

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Go on."""
        await call_next()


@dataclass(slots=True)
class Invocation:
    """One invocation of a tool, which its inside fills in."""

    call_id: str
    request: Content | None = None
    """What is asked, when the code waits: raised once the tool is left, for to wait is not to fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """One call of the model, as the framework tells of it."""

    call_id: str
    occurrence: str
    """Of this call and no other, where the framework has one."""
    code: str
    session: AgentSession | None
    approval: Content | None
    """What a person said to a request about it."""


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
        tool_name: str,
        middleware: Sequence[Process] = (),
    ) -> None:
        super().__init__(
            name=tool_name,
            description=description.replace(f"`{EXECUTE_CODE}`", f"`{tool_name}`"),
            approval_mode=approval_mode,
            func=self._execute,
            input_model=SCHEMA,
            additional_properties={},
        )
        self._environments, self._snapshot = environments, snapshot
        self._form: ResultForm = form
        self._pauses, self._middleware = pauses, middleware

    async def invoke(self, **given: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """As `FunctionTool.invoke`; the id of the call is kept for the calls inside it.

        Raises:
            UserInputRequiredException: The code waits for a person.
        """
        invocation = Invocation(given.get("tool_call_id") or "")
        token = _invocation.set(invocation)
        try:
            result = await super().invoke(**given)
        finally:
            _invocation.reset(token)
        if invocation.request is not None:
            raise UserInputRequiredException(contents=[invocation.request])
        return result

    async def _execute(self, code: str, ctx: FunctionInvocationContext) -> list[Content]:
        invocation = _invocation.get()
        serving = Serving(
            call_id=invocation.call_id,
            occurrence=str(ctx.metadata.get("function_call_occurrence_id") or invocation.call_id),
            code=code,
            session=ctx.session,
            approval=ctx.metadata.get("approval_response"),
        )
        try:
            if self._environments.setup.per_call and "call_id" not in ctx.metadata and self._snapshot.needs_approval:
                raise InvalidSetting(UNTOLD, hint="Agent(tools=[tool], middleware=[tool.middleware])")
            async with self._environments.use(self._snapshot) as environment:
                self._dispatch(environment, serving.call_id, ctx).use()
                result = await self._run(environment, serving)
        except (ApprovalRequired, InDoubt) as stop:
            invocation.request = self._pauses.request(
                stop, call_id=serving.call_id, occurrence=serving.occurrence, code=code, session=ctx.session
            )
            return []
        except HatchwayError as e:
            self._pauses.ended(serving.occurrence, ctx.session)
            return failure_contents(e, self._form)
        self._pauses.ended(serving.occurrence, ctx.session)
        return result_contents(result, self._form)

    def _dispatch(self, environment: Environment, call_id: str, ctx: FunctionInvocationContext) -> Dispatch:
        return Dispatch(
            tools={tool.name: tool for tool in self._snapshot.tools},
            typed=environment.typed,
            session=ctx.session,
            kwargs={name: value for name, value in ctx.kwargs.items() if name != "session"},
            middleware=self._middleware,
            parent=call_id or self.name,
            per_call=self._environments.setup.per_call,
        )

    async def _run(self, environment: Environment, serving: Serving) -> ExecutionResult:
        try:
            found = None
            if serving.approval is not None and self._environments.setup.per_call:
                found = self._pauses.of(serving.occurrence, serving.session, serving.approval)
                if found is None and await self._environments.is_waiting(environment, serving.code):
                    raise CheckpointRefused(
                        "it is paused, and its approval came without the token of the pause: it is not run again",
                        hint="hand on what request.to_function_approval_response() or decide() gave, as it is",
                    )
            return await (environment.mode.run(serving.code) if found is None else self._gone_on(environment, *found))
        except (ApprovalRequired, InDoubt) as stop:
            self._environments.waits(stop.run_id, environment, serving.code)
            raise

    async def _gone_on(self, environment: Environment, pause: Pause, told: Any) -> ExecutionResult:
        """Settle the calls of a pause and go on; what was settled already is not settled again."""
        try:
            return await self._environments.resume(environment, pause.run_id, {})  # it ended, or died on its way
        except (ApprovalRequired, InDoubt) as stop:
            decisions = decisions_of(pause, told, stop)
        return await self._environments.resume(environment, pause.run_id, decisions)


class _Standing(CodeTool):
    """A tool that stands alone: it has a registry of its own, and tells everything in its description."""

    _sandbox: str

    def __init__(self, *, settings: Mapping[str, Any], type_check: bool, **options: Unpack[Options]) -> None:
        given = complete(options, self)
        registry = Registry(
            given["tools"], given["file_mounts"] or (), given["allowed_domains"] or (), given["workspace_root"],
            tool_name=given["tool_name"],
        )  # fmt: skip
        if unconnected := [server for server in registry.servers() if not server.is_connected]:
            raise InvalidTool(
                f"the server {unconnected[0].name!r} is not connected: its tools are not known",
                hint="await server.connect() first, or take a provider, which does it",
            )
        snapshot = registry.snapshot()
        setup = made_setup(self._sandbox, settings, given, type_check=type_check)
        environments = Environments(setup)
        super().__init__(
            environments=environments,
            snapshot=snapshot,
            description=environments.describe(snapshot).description,
            approval_mode=effective_approval(given["approval_mode"], snapshot, per_call=setup.per_call),
            form=given["result_form"],
            pauses=Pauses(f"{self._sandbox}_{given['tool_name']}", environments.key, given["tool_name"]),
            tool_name=given["tool_name"],
        )

    @property
    def middleware(self) -> FunctionMiddleware:
        """What an agent needs for `per_call_approval`: `Agent(tools=[tool], middleware=[tool.middleware])`."""
        return Approvals()

    def decide(
        self, request: Content, answers: Mapping[str, Answer] | Answer, *, session: AgentSession | None = None
    ) -> Content:
        """The response that answers a paused action call by call; see `docs/agent-framework.md`."""
        return self._pauses.decide(request, answers, session)

    async def aclose(self) -> None:
        """Close the sandbox of this event loop."""
        await self._environments.aclose()


class MontyExecuteCodeTool(_Standing):
    """`execute_code` in Monty, for `Agent(tools=[…])`; takes the options of `MontyCodeActProvider`."""

    _sandbox = "monty"

    @spelled_out
    def __init__(self, *, type_check: bool = True, **options: Unpack[Options]) -> None:
        super().__init__(settings={}, type_check=type_check, **options)


class JailExecuteCodeTool(_Standing):
    """`execute_code` in the jail, for `Agent(tools=[…])`; takes the options of `JailCodeActProvider`."""

    _sandbox = "jail"

    @spelled_out
    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__(settings={}, type_check=False, **options)


class ContainerExecuteCodeTool(_Standing):
    """`execute_code` in a container, for `Agent(tools=[…])`; takes the options of `ContainerCodeActProvider`."""

    _sandbox = "container"

    @spelled_out
    def __init__(self, *, image: str | None = None, **options: Unpack[Options]) -> None:
        super().__init__(settings={"image": image}, type_check=False, **options)


class HyperlightExecuteCodeTool(_Standing):
    """`execute_code` in a Hyperlight micro-VM, for `Agent(tools=[…])`; as `HyperlightCodeActProvider`."""

    _sandbox = "hyperlight"

    @spelled_out
    def __init__(
        self,
        *,
        backend: str = "wasm",
        module: str | None = "python_guest.path",
        module_path: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        settings = {"backend": backend, "module": module, "module_path": module_path}
        super().__init__(settings=settings, type_check=False, **options)
