"""Turn: the events of one turn as they come, on the screen and in the recording; its questions put to the person."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Literal, cast

from hatchway.cli.failing import failure_text
from hatchway.cli.recording import Recording
from hatchway.cli.tui.approving import Answer, Approver
from hatchway.cli.tui.screen import Screen
from hatchway.cli.tui.scroll import Scroll
from hatchway.cli.tui.status import Status
from hatchway.cli.tui.streaming import MarkdownStream
from hatchway.core.decisions import Allow
from hatchway.core.errors import HatchwayError
from hatchway.core.events import (
    AgentEvent,
    ApprovalRequest,
    CallFailed,
    CallStarted,
    CodeExecutionOutput,
    Response,
    ResponseChunk,
    Retrying,
    RunFailed,
    RunResumed,
    RunStarted,
    ThoughtsChunk,
    ToolOutput,
)
from hatchway.trace.blocks import Block, Line, Part, Prose
from hatchway.trace.dialogue import MAIN, Dialogue
from hatchway.trace.text import cut, neutral

Allower = Literal["option", "permission", "writer"]
"""`writer`: the person wrote the code that asks."""
LIVE_CHARACTERS = 4_000
ERROR_CHARACTERS = 2_000


class TurnView:
    """Shows turns, one after the other.

    Args:
        screen: Where.
        status: The line at its bottom.
        approver: Asks.
        approves: Who allows something without the person being asked, if anybody does.
        recording: Takes all that is shown.
    """

    def __init__(
        self,
        screen: Screen,
        status: Status,
        approver: Approver,
        *,
        approves: Callable[[ApprovalRequest], Allower | None],
        recording: Recording | None = None,
    ) -> None:
        self._screen, self._status, self._approver = screen, status, approver
        self._approves, self._recording = approves, recording
        self._is_asking = False
        self._held: list[AgentEvent] = []
        self._dialogue = Dialogue()
        self._stream = MarkdownStream()
        self._thoughts = ""
        self._is_cancelled = False
        self.scroll = Scroll(screen.print, lambda: screen.width, self._set_live)

    def said(self, prompt: str, *, is_code: bool = False) -> None:
        """What the person said."""
        self.add(self._dialogue.said(prompt, is_code=is_code))

    def note(self, text: str, *, is_bad: bool = False) -> None:
        """A line of our own."""
        self.add([Line(mark="✗" if is_bad else "▣", tone="bad" if is_bad else "dim", parts=[Part(neutral(text))])])

    def failed(self, error: Exception) -> None:
        """Something went wrong."""
        self.note(cut(failure_text(error), ERROR_CHARACTERS), is_bad=True)

    def show(self, blocks: Sequence[Block]) -> None:
        """Show blocks that are no part of the conversation."""
        self.scroll.add(blocks)

    def add(self, blocks: Sequence[Block]) -> None:
        """Show and record blocks."""
        self.scroll.add(blocks)
        if self._recording is not None:
            self._recording.add(blocks)

    async def follow(self, events: AsyncIterator[AgentEvent], cancel: Callable[[], Awaitable[None]]) -> None:
        """Show a turn to its end, whatever that is; Esc cancels it."""
        requests: asyncio.Queue[ApprovalRequest] = asyncio.Queue()
        asking = asyncio.ensure_future(self._ask_all(requests))
        cancelling: list[asyncio.Future[None]] = []
        self._is_cancelled = False

        def on_cancel() -> None:
            if not cancelling:
                self._is_cancelled, self._status.doing = True, "cancelling"
                cancelling.append(asyncio.ensure_future(cancel()))

        self._screen.on_cancel = on_cancel
        self._status.since, self._status.doing = time.monotonic(), "thinking"
        try:
            async with aclosing(cast("AsyncGenerator[AgentEvent]", events)) as stream:
                async for event in stream:
                    if isinstance(event, ApprovalRequest):
                        requests.put_nowait(event)  # shown when it is its turn, right above the question
                    elif self._is_asking:
                        self._held.append(event)  # nothing comes between what is asked about and the question
                    else:
                        self._show(event)
            await asyncio.gather(*cancelling)
        except Exception as e:  # a turn that fails leaves the conversation as it was before: the person can go on
            self._release()
            self._break_off(keeps=True)
            self.failed(e)
        finally:
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking
            self._end()

    def _end(self) -> None:
        self._screen.on_cancel = lambda: None
        self._release()
        self._break_off(keeps=True)
        self.scroll.close()
        self._status.since, self._status.doing = 0.0, ""

    def _break_off(self, *, keeps: bool) -> None:
        """What streamed in so far is all there will be of it."""
        rest = self._stream.end()
        self._thoughts = ""
        self._set_live("")
        if keeps and rest.strip():
            self.add([Prose(text=rest)])

    def _show(self, event: AgentEvent) -> None:
        match event:
            case RunFailed() if self._is_cancelled:
                pass  # that it was cancelled says it all
            case ResponseChunk() | ThoughtsChunk() if event.agent_id not in ("", MAIN):
                pass  # several may speak at once: what they say is shown when it is whole
            case ResponseChunk(content=text):
                self._thoughts = ""
                self.add(self._dialogue.speaks(MAIN))
                self.scroll.add([Prose(text=block) for block in self._stream.feed(text)])
                self._set_live(self._stream.tail(LIVE_CHARACTERS))
            case Response() if event.agent_id in ("", MAIN):
                self._responded(event)
            case ThoughtsChunk(content=text):
                self._thoughts = (self._thoughts + neutral(text))[-LIVE_CHARACTERS:]
                self._set_live(self._thoughts)
            case _:
                self._break_off(keeps=not isinstance(event, Retrying))
                self.add(self._dialogue.told(event))
        if isinstance(event, RunStarted):
            self._status.sandbox = neutral(event.sandbox) + (" (unsealed)" if event.tier == "process" else "")
        if not self._is_asking:
            self._status.doing = doing_after(event) or self._status.doing
        self._screen.refresh()

    def _responded(self, event: Response) -> None:
        """The reply is whole: what was not on the screen yet goes there, and all of it into the recording."""
        blocks = self._dialogue.told(event)
        rest = self._stream.end()
        self._set_live("")
        shown = [block for block in blocks if not isinstance(block, Prose)]
        self.scroll.add([*shown, *([Prose(text=rest)] if rest.strip() else [])])
        if self._recording is not None:
            self._recording.add(blocks)

    async def _ask_all(self, requests: asyncio.Queue[ApprovalRequest]) -> None:
        while True:
            request = await requests.get()
            if (by := self._approves(request)) is not None:
                self.add(self._dialogue.allowed(request, is_shown=by == "writer"))
                request.approve(Allow())
            elif request.is_open:
                await self._ask(request, more=requests.qsize())

    async def _ask(self, request: ApprovalRequest, *, more: int) -> None:
        self._show(request)
        doing, self._status.doing, self._is_asking = self._status.doing, "waits for you", True
        try:
            answer = await self._answered(request, more)
        finally:
            self._status.doing, self._is_asking = doing, False
        if answer is None:
            self.note(f"nobody waits for a decision about {request.tool_name} any more")
        else:
            self.add(self._dialogue.decided(request, answer.decision))
            if answer.kept:
                self.note(answer.kept)
            request.approve(answer.decision)
        self._release()

    def _release(self) -> None:
        """Show what came while a question was open."""
        held, self._held = self._held, []
        for event in held:
            self._show(event)

    async def _answered(self, request: ApprovalRequest, more: int) -> Answer | None:
        """The person's answer; None: it took too long, or came to nothing because of another one."""
        closed = asyncio.ensure_future(request.closed())
        try:
            while True:
                asking = asyncio.ensure_future(self._approver.ask(request, more=more))
                try:
                    await asyncio.wait({asking, closed}, return_when=asyncio.FIRST_COMPLETED)
                    if not asking.done():
                        return None
                    return asking.result()
                except HatchwayError as e:  # a pattern that says nothing, a file that cannot be written
                    self.failed(e)
                finally:
                    asking.cancel()
                    await asyncio.gather(asking, return_exceptions=True)
        finally:
            closed.cancel()

    def _set_live(self, text: str) -> None:
        self._screen.live = text


def doing_after(event: AgentEvent) -> str:
    """What the agent does once this happened; empty where that says nothing about it."""
    match event:
        case RunStarted() | RunResumed():
            return "running"
        case CallStarted(call=call):
            return f"calling {neutral(call.function_name)}"
        case ToolOutput(run_id=run_id) | CallFailed(run_id=run_id):
            return "running" if run_id else "thinking"  # code goes on, or the model
        case CodeExecutionOutput() | RunFailed() | ResponseChunk() | ThoughtsChunk():
            return "thinking"
        case _:
            return ""
