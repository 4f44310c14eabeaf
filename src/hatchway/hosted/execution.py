"""HostedExecution: one request to a vendor, driven by pulling like any execution."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from hatchway.core.calls import FunctionCall, Waiting, pending_id
from hatchway.core.errors import AnswerWithheld, CodeRuntimeError, SandboxCrashed, TransportError
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult, Usage
from hatchway.core.sandbox import CodeExecution, OnDisplay, OnOutput
from hatchway.core.signing import seal
from hatchway.hosted.code import Answer, Item, ProgrammaticCall, displays_of
from hatchway.hosted.context import Turn
from hatchway.hosted.encoding import encoded, output_of, told
from hatchway.hosted.exchange import Exchange
from hatchway.hosted.reply import HostedReply, handled, last_text, with_here
from hatchway.hosted.telling import Teller
from hatchway.hosted.vendor import Answered
from hatchway.hosted.wire import as_item


class HostedExecution(CodeExecution):
    """Asks a vendor until it is done; in between it stands at calls to our tools, until ALL of them are answered:
    no vendor takes a part of the results.
    """

    def __init__(self, turn: Turn, limits: Limits, on_output: OnOutput | None) -> None:
        self._turn = turn
        self._adapter = turn.adapter
        self._vendor = turn.adapter.vendor
        self._limits = limits
        self._teller = Teller(turn, on_output, limits.output_bytes)
        self._exchange = Exchange(turn, limits, self._teller)
        self._answers: list[Answer] = []
        self._responses: list[Item] = []
        self._unseen: list[FunctionCall] = []
        self._open: dict[str, ProgrammaticCall] = {}
        self._given: dict[str, Answered] = {}
        self._sending: asyncio.Future[Item] | None = None
        self._end: ExecutionResult | Exception | None = None

    def begin(self, prompt: str) -> None:
        """Take the session for a request."""
        self._turn.session.is_busy = True
        self._exchange.new = []
        self._exchange.prompt = prompt

    def go_on(self, state: Mapping[str, Any]) -> None:
        """Stand where a checkpoint was taken; the open calls are handed out once more."""
        self._turn.session.is_busy = True
        self._exchange.load(state["exchange"])
        self._responses = list(state["responses"])
        self._answers = [self._vendor.read(response, self._exchange.said) for response in self._responses]
        self._teller.told.update(code.call.call_id for answer in self._answers for code in answer.codes)
        self._stand_at(self._answers[-1])
        for call_id, (content, is_error) in state["given"].items():
            self._give(call_id, content, is_error=is_error)
        self._unseen = [call for call in self._unseen if call.call_id in self._open]

    async def next(self) -> FunctionCall | Waiting | ExecutionResult:
        """As the contract says; between two sets of calls the vendor is asked."""
        while self._end is None:
            if self._unseen:
                return self._unseen.pop(0)
            if self._open:
                return Waiting(tuple(self._call(call) for call in self._open.values()))
            try:
                await self._ask()
            except asyncio.CancelledError:
                await self.cancel()
                raise
            except Exception as e:
                self._ended(e)
        if isinstance(self._end, Exception):
            raise self._end
        return self._end

    def poll(self) -> FunctionCall | Waiting | None:
        """Calls that are here already."""
        if self._end is None and self._unseen:
            return self._unseen.pop(0)
        return Waiting(tuple(map(self._call, self._open.values()))) if self._end is None and self._open else None

    def watch_displays(self, on_display: OnDisplay) -> None:
        """Pictures are told as they come."""
        self._teller.on_display = on_display

    async def provide_result(self, value: Any, *, call_id: str | None = None) -> None:
        """Answer a call; the vendor hears it once all calls of its response are answered."""
        call = self._pending(call_id)
        tool = self._adapter.offer.tools.get(call.tool)
        was_told = self._vendor.tells_returns and tool is not None and tool.returns is not None
        content = encoded(value, as_json=was_told)
        self._give(call.call_id, content)

    async def provide_error(self, error: BaseException, *, call_id: str | None = None) -> None:
        """Answer a call with an error, told to the vendor's code or model."""
        self._give(self._pending(call_id).call_id, told(error), is_error=True)

    def dump(self) -> bytes | None:
        """The request as it stands: history, responses and answers, as signed JSON."""
        if not self._open or self._unseen:
            raise RuntimeError("the execution is not waiting")
        turn = self._turn
        state = {
            "session_id": turn.session.session_id,
            "session": turn.session.state(),
            "prompt": turn.prompt.text,
            "options": turn.options,
            "run_id": turn.run_id,
            "limits": asdict(self._limits),
            "exchange": self._exchange.state(),
            "responses": self._responses,
            "given": {call_id: [given.content, given.is_error] for call_id, given in self._given.items()},
        }
        return seal(json.dumps(state).encode(), {"backend": self._adapter.provider})

    @property
    def ran(self) -> float:
        """Seconds spent at the vendor."""
        return self._exchange.ran

    async def cancel(self) -> None:
        """Give the request up; a response under way is dropped, and the session is as it was before."""
        self._ended(CodeRuntimeError("the request was cancelled", stdout=self._teller.stdout))
        if self._sending is not None and not self._sending.done():
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)

    async def _ask(self) -> None:
        if len(self._answers) >= self._adapter.max_rounds:
            raise AnswerWithheld.after(self._adapter.provider, self._adapter.max_rounds)
        if self._given:
            self._exchange.new += self._vendor.answered(list(self._given.values()), self._adapter.offer)
            self._given.clear()
        self._sending = asyncio.ensure_future(self._exchange.ask())
        try:
            response = await self._sending
        except asyncio.CancelledError:
            if self._end is not None:
                return  # cancelled by `cancel`: `next` tells how it ended
            raise
        answer = self._vendor.read(response, self._exchange.said)
        self._responses.append(response)
        self._answers.append(answer)
        self._exchange.taken(answer)
        self._teller.tell(answer)
        await self._turned(answer)

    async def _turned(self, answer: Answer) -> None:
        match answer.stop:
            case "calls":
                self._stand_at(answer)
                for call in self._open.values():
                    self._teller.made(call)
                self._refuse()
            case "continue":
                return
            case "filtered" | "incomplete":
                raise AnswerWithheld(self._adapter.provider, answer.reason, text=answer.text or answer.refusal)
            case "failed":
                raise SandboxCrashed(f"{self._adapter.provider} failed: {answer.reason}", hint="ask again")
            case "end":
                await self._finish(answer)

    def _stand_at(self, answer: Answer) -> None:
        self._open = {call.call_id: call for call in answer.calls}
        if len(self._open) != len(answer.calls) or not all(self._open):
            raise TransportError(f"{self._adapter.provider} sent two calls with one id", hint="ask again")
        self._unseen = [self._call(call) for call in answer.calls]

    def _refuse(self) -> None:
        """Calls that never come to the gate: nothing it could bind, or by code that was not offered the tool."""
        for call in tuple(self._open.values()):
            if why := self._adapter.offer.refuses(call):
                self._unseen = [other for other in self._unseen if other.call_id != call.call_id]
                self._teller.refused(call, why)
                self._give(call.call_id, f"ToolError: {why}", is_error=True)

    def _call(self, call: ProgrammaticCall) -> FunctionCall:
        tool = self._adapter.offer.tools.get(call.tool)
        named = as_item(call.arguments)
        return FunctionCall(call_id=call.call_id, function_name=tool.name if tool else call.tool, kwargs=named)

    def _pending(self, call_id: str | None) -> ProgrammaticCall:
        return self._open[pending_id(call_id, self._open)]

    def _give(self, call_id: str, content: str, *, is_error: bool = False) -> None:
        self._given[call_id] = Answered(call=self._open.pop(call_id), content=content, is_error=is_error)

    async def _finish(self, answer: Answer) -> None:
        if answer.refusal and not answer.text:
            raise AnswerWithheld(self._adapter.provider, "refusal", text=answer.refusal)
        session = self._turn.session
        session.history = [*session.history, *self._exchange.new]
        text, teller = last_text(self._answers), self._teller
        codes = tuple(code for each in self._answers for code in each.codes)
        displays = displays_of(image for each in self._answers for image in each.every_image)
        reply = HostedReply(
            output=output_of(self._adapter.provider, text, self._turn.options.get("output_schema")),
            stdout=teller.stdout,
            stderr=teller.stderr,
            images=displays,
            displays=displays,
            usage=Usage(wall_seconds=self.ran),
            tier="vendor",
            text=text,
            codes=codes,
            tool_results=tuple([await handled(code, self._turn) for code in codes]),
            citations=tuple(file for each in self._answers for file in each.citations),
            container=session.container,
            telemetry=tuple(self._exchange.telemetry),
            items=tuple(item for each in self._answers for item in each.items),
            session=session,
        )
        self._ended(await with_here(reply, self._turn))

    def _ended(self, end: ExecutionResult | Exception) -> None:
        if self._end is None:
            self._end = end
            if isinstance(end, Exception):
                self._exchange.undo()
            self._turn.session.is_busy = False


def read_checkpoint(payload: bytes) -> dict[str, Any]:
    """What `dump` wrote, once its signature was checked."""
    return json.loads(payload)
