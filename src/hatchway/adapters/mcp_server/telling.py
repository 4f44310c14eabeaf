"""What a client hears while code runs: progress at each call, log messages for what is printed, and questions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.types import (
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    LoggingLevel,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
)
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS

from hatchway.adapters.mcp_server.answers import as_text
from hatchway.core.decisions import Allow, Decision, Deny
from hatchway.core.errors import ApprovalRequired
from hatchway.core.events import (
    AgentEvent,
    ApprovalRequest,
    CallFailed,
    CallStarted,
    CodeExecutionOutputChunk,
    RunResumed,
    RunStarted,
    ToolOutput,
)

Context = ServerRequestContext[Any, Any]
_CHOICES = ["allow", "allow for this run", "deny"]
_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {"type": "string", "enum": _CHOICES, "description": "May this call run?"},
        "reason": {"type": "string", "description": "Told to the code when you deny."},
    },
    "required": ["decision"],
}


def has_person(context: Context) -> bool:
    """Whether the client lets its person be asked."""
    declared = context.session.client_capabilities
    return declared is not None and declared.elicitation is not None


def can_ask(context: Context) -> bool:
    """Whether that person can be asked while a call is under way; newer clients are asked between two calls."""
    return has_person(context) and context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS


async def asked(context: Context, request: ApprovalRequest) -> Decision:
    """What the client's person says about a call; no answer is a denial."""
    message = _question(request.tool_name, request.tool_args)
    return decision(await context.session.elicit_form(message, _FORM, related_request_id=context.request_id))


def questions(waiting: ApprovalRequired) -> InputRequiredResult:
    """The calls a run waits for as questions to the client's person; the run goes on with their answers."""
    forms = {
        call.call_id: ElicitRequestFormParams(
            message=_question(call.function_name, call.kwargs), requested_schema=_FORM
        )
        for call in waiting.pending
    }
    asked_for: dict[str, Any] = {call_id: ElicitRequest(params=form) for call_id, form in forms.items()}
    return InputRequiredResult(input_requests=asked_for, request_state=waiting.run_id)


def decision(answer: Any) -> Decision:
    """A person's answer to the form; whatever is no clear yes is a denial."""
    content: Mapping[str, Any] = getattr(answer, "content", None) or {}
    if getattr(answer, "action", "") != "accept" or content.get("decision") not in _CHOICES[:2]:
        return Deny(str(content.get("reason") or "the person did not allow it"))
    return Allow("run") if content["decision"] == _CHOICES[1] else Allow()


def _question(tool: str, arguments: Mapping[str, Any]) -> str:
    return f"The code wants to call {tool}({as_text(dict(arguments))})."


class Hearing:
    """Takes the events of a mode (`CodeMode(on_event=…)`) and hands those of each run to whoever started it."""

    def __init__(self) -> None:
        self._starter: ContextVar[asyncio.Queue[AgentEvent | None] | None] = ContextVar("starter", default=None)
        self._runs: dict[str, asyncio.Queue[AgentEvent | None]] = {}

    def __call__(self, event: AgentEvent) -> None:
        """An event of some run."""
        if isinstance(event, RunStarted | RunResumed) and (queue := self._starter.get()) is not None:
            self._runs[event.run_id] = queue
        if (found := self._runs.get(event.run_id)) is not None:
            found.put_nowait(event)

    @asynccontextmanager
    async def heard_by(self, telling: Telling) -> AsyncGenerator[None]:
        """Runs that start inside are told of; everything is told when this is left."""
        queue: asyncio.Queue[AgentEvent | None] = asyncio.Queue()

        async def pass_on() -> None:
            while (event := await queue.get()) is not None:
                await telling.tell(event)

        passing, before = asyncio.create_task(pass_on()), self._starter.set(queue)
        try:
            yield
        finally:
            self._starter.reset(before)
            self._runs = {run_id: each for run_id, each in self._runs.items() if each is not queue}
            queue.put_nowait(None)
            await asyncio.gather(passing, return_exceptions=True)


class Telling:
    """Tells one client about one run.

    Args:
        context: Of the client's call.
        level: The least log message it wants; what code prints is `info`.
    """

    def __init__(self, context: Context, *, level: LoggingLevel = "info") -> None:
        self._context = context
        self._logs = level in ("debug", "info")
        self._steps = 0

    async def tell(self, event: AgentEvent) -> None:
        """Pass an event on, where the client wants to hear such."""
        match event:
            case CallStarted(call=call):
                await self._progress(f"{call.function_name} …")
            case ToolOutput(tool_name=name):
                await self._progress(f"{name} done")
            case CallFailed(tool_name=name, error=error):
                await self._progress(f"{name} failed: {error.splitlines()[0] if error else ''}")
            case CodeExecutionOutputChunk(text=said, stream=stream):
                await self._log(said, stream)
            case _:
                pass

    async def _progress(self, message: str) -> None:
        self._steps += 1
        await self._context.session.report_progress(self._steps, None, message)

    async def _log(self, said: str, stream: str) -> None:
        if not self._logs:
            return
        params = LoggingMessageNotificationParams(level="info", data=said, logger=stream)
        note = LoggingMessageNotification(params=params)
        await self._context.session.send_notification(note, related_request_id=self._context.request_id)
