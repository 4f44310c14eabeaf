"""HostedAdapter: the face of a vendor. Requests in, replies out; every call to a tool of ours through the gate."""

from __future__ import annotations

import asyncio
import contextvars
import os
import time
from abc import ABC
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self, cast
from weakref import WeakValueDictionary

from hatchway.core.decisions import ApproveCallback, Settlement
from hatchway.core.errors import InvalidSetting
from hatchway.core.events import AgentEvent, RunResumed, RunStarted
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult
from hatchway.gate.rules import Rule
from hatchway.hosted.code import FileRef, HostedCodeResult, Item, Provider
from hatchway.hosted.context import TURN, EventBus, PromptMetadata, ToolResult, Turn
from hatchway.hosted.downloads import save_all
from hatchway.hosted.local_code import close_local_code
from hatchway.hosted.offering import offered
from hatchway.hosted.provider_tool import ProviderTool
from hatchway.hosted.reply import HostedReply
from hatchway.hosted.sandbox import HostedSandbox
from hatchway.hosted.session import HostedSession
from hatchway.hosted.uploads import Uploads
from hatchway.hosted.vendor import Vendor
from hatchway.mode.mode import CodeMode
from hatchway.tools.functions import Tool

DEFAULT_LIMITS = Limits(wall_seconds=600.0)
"""A vendor's model thinks before its code runs."""


class HostedAdapter(ABC):
    """A vendor's model with its code tool and our tools. Use it in `async with`, or close it with `aclose`.

    Args:
        vendor: Speaks the vendor's language.
        model: The vendor's name of the model.
        tools: The vendor's code tool, our `Tool`s and plain functions. Those given to the code tool are called by its
            code, the others by the model itself; all of them pass the gate.
        instructions: What the model is told first.
        allowed_host_roots: Folders of this machine host mounts may be in.
        approve, rules, journal: As for `CodeMode`.
        limits: Of each request; the time waiting for people and tools does not count.
        deadline: Seconds a whole request may take, waiting included; None for no such limit.
        retries: How often a request is made again when the vendor is busy or fails.
        max_rounds: Requests to the vendor for one answer.
        max_output_tokens: Of each response.
        settings: More arguments for the SDK's call.
        on_event: Sees every event of every request.

    Raises:
        InvalidTool: A tool is for another vendor, or cannot be offered as given.
        InvalidSetting: A setting that is not valid.
    """

    provider: ClassVar[Provider]

    def __init__(
        self,
        vendor: Vendor,
        model: str,
        *,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        instructions: str = "",
        allowed_host_roots: Iterable[str | os.PathLike[str]] = (),
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
            raise InvalidSetting(f"retries is at least 0 and max_rounds at least 1, not {retries} and {max_rounds}")
        if not model:
            raise InvalidSetting("a model of the vendor is named", hint=f'{type(self).__name__}("its-name")')
        self.vendor = vendor
        self.model = model
        self.offer = offered(self.provider, tools)
        self.instructions = instructions
        self.deadline = deadline
        self.retries = retries
        self.max_rounds = max_rounds
        self.max_output_tokens = max_output_tokens
        self.settings = dict(settings or {})
        self.event_bus = EventBus()
        if on_event is not None:
            self.event_bus.subscribe(on_event)
        self._uploads = Uploads(vendor, tuple(Path(root) for root in allowed_host_roots))
        self._sessions: WeakValueDictionary[str, HostedSession] = WeakValueDictionary()
        self._news: set[str] = set()
        self._sandbox = HostedSandbox(self)
        self._mode = CodeMode(
            self._sandbox,
            tools=self.offer.tools.values(),
            approve=approve,
            rules=rules,
            limits=limits or DEFAULT_LIMITS,
            journal=journal,
            on_event=_heard,
        )

    def session(self) -> HostedSession:
        """A conversation, kept over several requests together with its container."""
        session = HostedSession(self._sandbox)
        self._sessions[session.session_id] = session
        return session

    async def run(
        self,
        prompt: str,
        *,
        session: HostedSession | None = None,
        tool_choice: str | None = None,
        output_schema: Mapping[str, Any] | None = None,
        name: str = "",
    ) -> HostedReply:
        """Ask, and have the whole reply.

        Args:
            prompt: The user's words.
            session: What was said before; without one a new conversation.
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
        options = self._options(tool_choice, output_schema)
        turn = self.new_turn(prompt, session or self.session(), name=name, options=options)
        token = TURN.set(turn)
        try:
            return _as_reply(await self._mode.run(prompt))
        finally:
            TURN.reset(token)

    async def stream(
        self,
        prompt: str,
        *,
        session: HostedSession | None = None,
        tool_choice: str | None = None,
        output_schema: Mapping[str, Any] | None = None,
        name: str = "",
    ) -> AsyncGenerator[AgentEvent, None]:
        """As `run`, with each event as it happens: code and words as they are written, output, calls, approvals.

        The last event is `CodeExecutionOutput`, whose `result` is the `HostedReply`; or `RunFailed`.
        """
        options = self._options(tool_choice, output_schema)
        turn = self.new_turn(prompt, session or self.session(), name=name, options=options)
        turn.streams = True
        events: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        turn.event_bus.subscribe(events.put_nowait)
        running = asyncio.create_task(self._driven(turn, prompt), context=contextvars.copy_context())
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
        turn = self.new_turn("", HostedSession(self._sandbox), options={})
        turn.run_id = run_id
        token = TURN.set(turn)
        try:
            return _as_reply(await self._mode.resume(run_id, decisions))
        finally:
            TURN.reset(token)

    async def download(self, file: FileRef) -> bytes:
        """A file the vendor's code made.

        Raises:
            InvalidSetting: It is another vendor's.
            SandboxUnavailable: It is gone, or the vendor refuses.
        """
        if file.provider != self.provider:
            raise InvalidSetting(
                f"the file {file.file_id} is at {file.provider}, this adapter speaks with {self.provider}"
            )
        return await self._uploads.asked(lambda: self.vendor.download(file), self.retries)

    async def download_all(
        self, reply: HostedReply | Iterable[FileRef], folder: str | os.PathLike[str]
    ) -> dict[str, Path]:
        """All files of a reply, in a folder, under names that cannot leave it; by file id where each was written."""
        files = reply.files_made if isinstance(reply, HostedReply) else tuple(reply)
        named = [await self._uploads.asked(partial(self.vendor.named, file), self.retries) for file in files]
        return await save_all(named, folder, self.download)

    async def aclose(self) -> None:
        """Give up what is under way. A client that was given stays the caller's to close."""
        await self._mode.aclose()
        for tool in self.offer.tools.values():
            await close_local_code(tool)
        await self.vendor.aclose()

    async def __aenter__(self) -> Self:
        await self._mode.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    # What the parts of a turn ask their adapter.

    def new_turn(
        self, prompt: str, session: HostedSession, *, name: str = "", options: dict[str, Any] | None = None
    ) -> Turn:
        """A request about to be made."""
        bus = EventBus()
        bus.subscribe(self.event_bus.publish)
        metadata = PromptMetadata(text=prompt, instructions=self.instructions, model=self.model, name=name)
        return Turn(
            prompt=metadata,
            adapter=self,
            session=session,
            event_bus=bus,
            deadline=None if self.deadline is None else time.monotonic() + self.deadline,
            options=options or {},
        )

    def known_session(self, session_id: str) -> HostedSession | None:
        """A session of this adapter that somebody still has."""
        return self._sessions.get(session_id)

    def is_news(self, kind: str) -> bool:
        """Whether a kind of item was not heard of before; once."""
        is_new = kind not in self._news
        self._news.add(kind)
        return is_new

    def told_instructions(self, session: HostedSession) -> str:
        """What the model is told first, and where its files lie."""
        if not session.placed:
            return self.instructions
        lines = "\n".join(f"- {name}: {path}" for name, path in sorted(session.placed.items()))
        return f"{self.instructions}\n\nFiles for your code, by their name and where they really lie:\n{lines}".lstrip()

    async def bring_files(self, turn: Turn, *, is_again: bool = False) -> list[Item]:
        """Have the mounted files where the code finds them; what must be said for it."""
        tool = self.offer.code
        if tool is None or (turn.session.placed and not is_again):
            return []
        return await self._uploads.bring(tool, turn, self.retries)

    async def handled(self, code: HostedCodeResult, turn: Turn) -> ToolResult[Any]:
        """A code result through the handlers of the code tool."""
        tool: ProviderTool[Any, Any, Any] | None = self.offer.code
        if tool is None:
            return ToolResult(code.text, code, code.success)
        result, default = self.vendor.result(tool, code)
        return await tool.handle(result, default, turn.context(code.call.call_id))

    async def _driven(self, turn: Turn, prompt: str) -> None:
        TURN.set(turn)
        async for _ in self._mode.stream(prompt):
            pass  # the turn's bus has told it

    def _options(self, tool_choice: str | None, output_schema: Mapping[str, Any] | None) -> dict[str, Any]:
        names = {*self.offer.tools} | ({self.offer.code.name} if self.offer.code else set[str]())
        if tool_choice is not None and tool_choice not in ("auto", "none", "required", *names):
            raise InvalidSetting(
                f"tool_choice is 'auto', 'none', 'required' or a tool, not {tool_choice!r}",
                hint=f"the tools are {', '.join(sorted(names)) or 'none'}",
            )
        return {"tool_choice": tool_choice, "output_schema": output_schema and dict(output_schema)}


def _heard(event: AgentEvent) -> None:
    """An event of the mode: it belongs to the turn of the task it happens in."""
    turn = TURN.get()
    if turn is None:
        return
    if isinstance(event, RunStarted | RunResumed):
        turn.run_id = event.run_id
    turn.event_bus.publish(event)


def _as_reply(result: ExecutionResult) -> HostedReply:
    """A reply; one whose request ended in another process has only what the journal kept."""
    if isinstance(result, HostedReply):
        return result
    fields = cast("Sequence[str]", ExecutionResult.__dataclass_fields__)
    return HostedReply(**{name: getattr(result, name) for name in fields}, text=str(result.output or ""))
