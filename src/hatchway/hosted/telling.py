"""Telling: what happens at a vendor, as events, each thing once."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hatchway.core.events import AgentEvent, CallFailed, Response, Thoughts
from hatchway.core.output import OutputBuffer
from hatchway.core.sandbox import OnDisplay, OnOutput
from hatchway.hosted.code import (
    Answer,
    HostedCodeCall,
    HostedCodeResult,
    HostedImage,
    ProgrammaticCall,
    Telemetry,
    displays_of,
    spells,
)
from hatchway.hosted.context import Turn
from hatchway.hosted.events import (
    ContainerLost,
    HostedCallMade,
    HostedCodeEnded,
    HostedCodeStarted,
    HostedRequestEnded,
    UnknownItem,
)
from hatchway.trace.otel import annotate


class Teller:
    """Tells what happens in one request."""

    def __init__(self, turn: Turn, on_output: OnOutput | None, output_bytes: int) -> None:
        self._turn = turn
        self._on_output = on_output
        self.on_display: OnDisplay | None = None
        self.told: set[str] = set()
        """The code that was told of already."""
        self._begun: set[str] = set()
        self._out, self._err = OutputBuffer(output_bytes), OutputBuffer(output_bytes)
        self._shown = 0
        self._used: Counter[str] = Counter()

    @property
    def stdout(self) -> str:
        """What all code printed so far, where the streams are not told apart too; cut past the limit."""
        return self._out.text()

    @property
    def stderr(self) -> str:
        """What all code wrote to stderr so far."""
        return self._err.text()

    def live(self, facts: Sequence[AgentEvent | HostedCodeResult]) -> None:
        """What a stream tells at once."""
        for fact in facts:
            if isinstance(fact, HostedCodeResult):
                self.ended(fact)
            elif isinstance(fact, HostedCodeStarted):
                self.begun(fact.call)
            elif isinstance(fact, UnknownItem):
                self.unknown(fact.kind, "left out of the answer")  # how it is put together is not known
            else:
                self.publish(fact)

    def tell(self, answer: Answer) -> None:
        """A whole response; what its stream told is not told again."""
        for kind in answer.unknown:
            self.unknown(kind, "kept as it came")
        if answer.thoughts:
            self.publish(Thoughts(answer.thoughts))
        *on_the_way, last = spells(answer.said)
        self._said(on_the_way)
        for code in answer.codes:
            self.ended(code)
        for call in answer.begun:  # before its calls: who decides about them sees the code that makes them
            self.begun(call)
        self._show(answer.images)
        self._said([last])

    def unknown(self, kind: str, became: str) -> None:
        """Something nobody here has heard of, in a response or in its stream; warned about once."""
        self.publish(UnknownItem(kind))
        if self._turn.adapter.desk.is_news(kind):
            warnings.warn(f"{self._turn.adapter.provider} sent {kind!r}: it is {became}", stacklevel=2)

    def begun(self, call: HostedCodeCall) -> None:
        """A piece of code is whole and runs; told once."""
        if not call.call_id or call.call_id not in self._begun:
            self._begun.add(call.call_id)
            self.publish(HostedCodeStarted(call))

    def ended(self, code: HostedCodeResult) -> None:
        """A piece of code ended: it, its output and its pictures."""
        if code.call.call_id and code.call.call_id in self.told:
            return
        self.told.add(code.call.call_id)
        self.begun(code.call)
        self._printed("stdout", (code.logs or "") + (code.stdout or ""))
        self._printed("stderr", code.stderr or "")
        self._show(code.images)
        self.publish(HostedCodeEnded(code))

    def made(self, call: ProgrammaticCall) -> None:
        """A call of ours left the vendor; its arguments are told by the gate, which knows what must not be seen."""
        self.publish(HostedCallMade(replace(call, arguments={})))

    def refused(self, call: ProgrammaticCall, why: str) -> None:
        """A call that does not come to the gate."""
        self.publish(CallFailed(why, call_id=call.call_id, tool_name=call.tool))

    def asking(self) -> None:
        """A request is about to be made: who is asked is in the span of the run also where nobody answers."""
        adapter = self._turn.adapter
        annotate({"gen_ai.provider.name": adapter.provider, "gen_ai.request.model": adapter.model})

    def failed(self, request_id: str | None) -> None:
        """A request was refused for good; by its id the vendor knows it."""
        annotate({"hatchway.vendor.request.id": request_id})

    def requested(self, telemetry: Telemetry) -> None:
        """A request came back: told, and noted in the span of the run with the tokens of all its requests."""
        for name in ("input_tokens", "output_tokens"):
            self._used[name] += getattr(telemetry, name) or 0
        annotate(
            {
                "gen_ai.response.model": telemetry.model,
                "gen_ai.response.id": telemetry.response_id,
                "gen_ai.usage.input_tokens": self._used["input_tokens"] or None,
                "gen_ai.usage.output_tokens": self._used["output_tokens"] or None,
                "gen_ai.request.max_tokens": telemetry.max_output_tokens,
                "hatchway.vendor.request.id": telemetry.request_id,
                "hatchway.container.id": telemetry.container_id,
                "hatchway.container.memory_limit": telemetry.memory_limit,
            }
        )
        self.publish(HostedRequestEnded(telemetry))

    def lost(self, container_id: str, reason: str) -> None:
        """A container is gone."""
        self.publish(ContainerLost(container_id, reason=reason))

    def publish(self, event: AgentEvent) -> None:
        """Tell an event as one of this run."""
        self._turn.event_bus.publish(replace(event, run_id=self._turn.run_id))

    def _said(self, said: Sequence[str]) -> None:
        for words in said:
            if words:
                self.publish(Response(words))

    def _show(self, images: Sequence[HostedImage]) -> None:
        for display in displays_of(images):
            self._shown += 1
            if self.on_display is not None:
                self.on_display(replace(display, name=f"{self._shown}-{display.name}"))

    def _printed(self, stream: str, text: str) -> None:
        if not text:
            return
        (self._out if stream == "stdout" else self._err).append(text)
        if self._on_output is not None:
            self._on_output("stdout" if stream == "stdout" else "stderr", text)
