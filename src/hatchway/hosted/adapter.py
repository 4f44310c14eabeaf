"""HostedAdapter: the face of a vendor. Requests in, replies out; every call to a tool of ours through the gate."""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from hatchway.core.decisions import ApproveCallback, Settlement
from hatchway.core.errors import InvalidSetting
from hatchway.core.events import AgentEvent
from hatchway.core.limits import Limits
from hatchway.core.results import ExecFile
from hatchway.gate.rules import Rule
from hatchway.hosted.context import EventBus, Turn, heard, serving
from hatchway.hosted.desk import Desk
from hatchway.hosted.files import HostedFiles
from hatchway.hosted.given import folders, worded
from hatchway.hosted.offering import offered
from hatchway.hosted.reply import HostedReply, as_reply
from hatchway.hosted.sandbox import HostedSandbox
from hatchway.hosted.session import HostedSession
from hatchway.hosted.supply import Supply
from hatchway.hosted.uploads import Uploads
from hatchway.hosted.vendor import Vendor
from hatchway.mode.mode import CodeMode
from hatchway.mode.sandbox_code import gated, sandbox_code
from hatchway.tools.functions import Tool

DEFAULT_LIMITS = Limits(wall_seconds=600.0)
"""A vendor's model thinks before its code runs."""


class HostedAdapter(HostedFiles):
    """A vendor's model with its code tool and our tools. Use it in `async with`, or close it with `aclose`.

    Args:
        vendor: Speaks the vendor's language.
        model: The vendor's name of the model.
        tools: The vendor's code tool, our `Tool`s and plain functions. Those given to the code tool are called by its
            code, the others by the model itself; all of them pass the gate.
        instructions: What the model is told first.
        allowed_host_roots: Folders of this machine host mounts may be in.
        approve, rules, journal: As for `CodeMode`; what the code tool was given holds too.
        limits: Of each request; the time waiting for people and tools does not count.
        deadline: Seconds a whole request may take, waiting included; None for no such limit.
        retries: How often a request is made again when the vendor is busy or fails.
        max_rounds: Requests to the vendor for one answer.
        max_output_tokens: Of each response.
        settings: More arguments for the SDK's call, in its words: of `responses.create`, of `messages.create`, or of
            Gemini's `GenerateContentConfig`. `tools` of the vendor's own (a web search) are offered beside these.
        on_event: Sees every event of every request.

    Raises:
        InvalidTool: A tool is for another vendor, or cannot be offered as given.
        InvalidSetting: A setting that is not valid.
    """

    def __init__(
        self,
        vendor: Vendor,
        model: str,
        *,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        instructions: str = "",
        allowed_host_roots: Iterable[str | os.PathLike[str]] | str | os.PathLike[str] = (),
        approve: ApproveCallback | None = None,
        rules: Iterable[Rule] = (),
        journal: Any = None,
        limits: Limits | None = None,
        deadline: float | None = None,
        retries: int = 2,
        max_rounds: int = 50,
        max_output_tokens: int | None = None,
        settings: Mapping[str, Any] | None = None,
        on_event: Callable[[AgentEvent], None] | None = None,
    ) -> None:
        if retries < 0 or max_rounds < 1:
            raise InvalidSetting(
                f"retries is at least 0 and max_rounds at least 1, not {retries} and {max_rounds}",
                hint="leave them out: 2 and 50",
            )
        if deadline is not None and not deadline > 0:
            raise InvalidSetting(f"deadline is in seconds and above 0, not {deadline}", hint="None for no deadline")
        if not model:
            raise InvalidSetting("a model of the vendor is named", hint=f'{type(self).__name__}("its-name")')
        self.vendor = vendor
        self.model = model
        stored = tuple(rules)
        offer = offered(self.provider, tools, vendor.runs)
        # code that runs here has a gate of its own: who decides about calls decides there too
        direct = {name: gated(tool, approve, stored) for name, tool in offer.direct.items()}
        self.offer = replace(offer, direct=direct)
        self.instructions = instructions
        self.deadline = deadline
        self.retries = retries
        self.max_rounds = max_rounds
        self.max_output_tokens = max_output_tokens
        self.settings = vendor.settings(settings or {})
        self.event_bus = EventBus()
        if on_event is not None:
            self.event_bus.subscribe(on_event)
        self.uploads = Uploads(vendor, retries)
        self.supply = Supply(vendor, folders("allowed_host_roots", allowed_host_roots), self.uploads)
        sandbox = HostedSandbox(self)
        self.desk = Desk(self, sandbox)
        code = self.offer.code
        if approve is not None and code is not None and code.approve is not None:
            raise InvalidSetting("approve is given twice", hint="give it to the adapter or to the code tool")
        self._mode = CodeMode(
            sandbox,
            tools=self.offer.tools.values(),
            approve=approve or (code.approve if code else None),
            rules=(*stored, *(code.rules if code else ())),
            limits=limits or (code.limits if code else None) or DEFAULT_LIMITS,
            journal=journal,
            on_event=heard,
        )

    def session(self) -> HostedSession:
        """A conversation, kept over several requests together with its container."""
        return self.desk.session()

    async def run(
        self,
        prompt: str,
        *,
        session: HostedSession | None = None,
        files: Iterable[ExecFile] = (),
        tool_choice: str | None = None,
        output_schema: Mapping[str, Any] | None = None,
        name: str = "",
    ) -> HostedReply:
        """Ask, and have the whole reply.

        Args:
            prompt: The user's words.
            session: What was said before; without one a new conversation.
            files: Brought to where the vendor's code finds them.
            tool_choice: `auto`, `none`, `required` (some tool) or the name of a tool (this very one).
            output_schema: A JSON schema the answer must have; it is then in `output`.
            name: What this request is called in `ToolContext.prompt`.

        Raises:
            ApprovalRequired: It stands at calls that wait for a person; go on with `resume`.
            AnswerWithheld: The answer was filtered, refused or cut short.
            CodeTimeoutError: The deadline passed.
            InvalidSetting: The vendor does not take the request.
            SandboxUnavailable, SandboxCrashed, TransportError: The vendor refused, failed or cannot be reached.
        """
        turn = self.desk.turn(
            worded(prompt), session, name=name, files=files, tool_choice=tool_choice, output_schema=output_schema
        )
        with serving(turn):
            return as_reply(await self._mode.run(prompt))

    async def stream(
        self,
        prompt: str,
        *,
        session: HostedSession | None = None,
        files: Iterable[ExecFile] = (),
        tool_choice: str | None = None,
        output_schema: Mapping[str, Any] | None = None,
        name: str = "",
    ) -> AsyncGenerator[AgentEvent, None]:
        """As `run`, with each event as it happens: code and words as they are written, output, calls, approvals.

        The last event is `CodeExecutionOutput`, whose `result` is the `HostedReply`; or `RunFailed`, for a deadline.

        Raises:
            AnswerWithheld, InvalidSetting, SandboxUnavailable, SandboxCrashed, TransportError: As `run`.
        """
        turn = self.desk.turn(
            worded(prompt), session, name=name, files=files, tool_choice=tool_choice, output_schema=output_schema
        )
        turn.streams = True
        async with aclosing(self.events(turn)) as events:
            async for event in events:
                yield event

    async def events(self, turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        """Drive a turn of the desk, and have its events, and no other's."""
        events: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        turn.event_bus.subscribe(events.put_nowait)
        running = asyncio.create_task(self._driven(turn), context=contextvars.copy_context())
        running.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            await running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def resume(self, run_id: str, decisions: Mapping[str, bool | Settlement] | None = None) -> HostedReply:
        """Go on with a request that waits for decisions; with a journal in whatever process.

        A vendor takes the results of all calls of a response together: while some are undecided, it is not asked.

        Raises:
            ApprovalRequired: Calls are still undecided.
            UnknownRun, RunTaken, InDoubt, CheckpointRefused: As `CodeMode.resume`.
        """
        turn = self.desk.turn("")
        turn.run_id = run_id
        with serving(turn):
            return as_reply(await self._mode.resume(run_id, decisions))

    async def aclose(self) -> None:
        """Give up what is under way. A client that was given stays the caller's to close."""
        await self._mode.aclose()
        for tool in self.offer.tools.values():
            if (code := sandbox_code(tool)) is not None:
                await code.aclose()
        await self.vendor.aclose()

    async def __aenter__(self) -> Self:
        await self._mode.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _driven(self, turn: Turn) -> None:
        with serving(turn):
            async for _ in self._mode.stream(turn.prompt.text):
                pass  # the turn's bus has told it
