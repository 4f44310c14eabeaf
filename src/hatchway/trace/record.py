"""Record: the events of a run, one after the other, told as blocks. Every view of a run shows these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import Decision, Deny, Edit
from hatchway.core.events import (
    AgentEvent,
    CallDecided,
    CallFailed,
    CallStarted,
    CodeExecutionDisplay,
    CodeExecutionOutput,
    CodeExecutionOutputChunk,
    RunFailed,
    RunPaused,
    RunResumed,
    RunStarted,
    ToolOutput,
)
from hatchway.trace.blocks import Block, Code, Line, Part, Picture, Said, Tone
from hatchway.trace.text import cut, elapsed_text, neutral, size_text, value_text
from hatchway.trace.wording import (
    BY,
    ERROR,
    VALUE,
    WHOLE,
    asking,
    call_parts,
    decision_words,
    how_many,
    moment,
    nth,
    outcome_mark,
    usage_words,
    waiting_words,
    whole_call,
    whole_outcome,
)


class Record:
    """Takes the events of one run.

    A call that ends right after it began is one line. So a beginning is held back until the next event, or until
    somebody who shows the run live asks for the `rest`.

    Args:
        began: When it began, in seconds since the epoch, for a run whose start is not among the events.
        callback: What the host's callback is called, where it decided; empty: it is not told who did.
    """

    def __init__(self, began: float = 0.0, *, callback: str = BY["callback"]) -> None:
        self._began = began
        self._by = BY | {"callback": callback}
        self._calls: dict[str, FunctionCall] = {}
        self._open: set[str] = set()
        self._decisions: dict[str, Decision] = {}
        self._displayed = 0
        self._held: CallStarted | CallDecided | None = None

    def told(self, event: AgentEvent) -> list[Block]:
        """The blocks of one event; kinds that say nothing new to a reader have none."""
        match event:
            case RunStarted():
                return self._started(event)
            case CallStarted(call=call):
                self._calls[call.call_id] = call
                self._open.add(call.call_id)
                return self._hold(event)
            case CallDecided(call=call, decision=decision):
                self._calls.setdefault(call.call_id, call)
                if self._decisions.get(call.call_id) == decision and not isinstance(decision, Deny):
                    return []  # stored at one terminal, taken up by the process that goes on: one fact
                self._decisions[call.call_id] = decision
                return self._hold(event) if isinstance(decision, Deny) else [*self.rest(), self._decided(event)]
            case ToolOutput() | CallFailed():
                self._open.discard(event.call_id)
                return self._ended_call(event)
            case CodeExecutionOutputChunk(text=text, stream=stream):
                return [*self.rest(), Said(text=neutral(text), source=stream)]
            case CodeExecutionDisplay(display=display):
                self._displayed += 1
                return [*self.rest(), Picture(file=display, name=neutral(display.name))]
            case RunPaused(pending=pending):
                return [*self.rest(), *self._paused(event.at, pending)]
            case RunResumed(epoch=epoch):
                again = Part(f"goes on, taken up for the {nth(epoch)} time")
                return [*self.rest(), self._line(event.at, "▶", "accent", again)]
            case CodeExecutionOutput():
                return [*self.rest(), *self._done(event)]
            case RunFailed(error=error):
                failed = self._line(event.at, "✗", "bad", Part(type(error).__name__, "bad"))
                return [*self.rest(), failed, Said(text=neutral(str(error)).rstrip("\n") + "\n", source="error")]
            case _:
                return []

    def note(self, call: FunctionCall) -> None:
        """A call that is told when it ends, as it was last heard of: a person may have changed it."""
        self._calls[call.call_id] = call

    def rest(self) -> list[Block]:
        """What is held back, now."""
        held, self._held = self._held, None
        match held:
            case None:
                return []
            case CallStarted(call=call):
                return [self._line(held.at, "→", "accent", *call_parts(call), whole=whole_call(call))]
            case CallDecided():
                return [self._decided(held)]

    def all(self, events: Iterable[AgentEvent]) -> list[Block]:
        """The blocks of a whole run, pieces of output put together."""
        blocks = [block for event in events for block in self.told(event)]
        return list(joined([*blocks, *self.rest()]))

    def _hold(self, event: CallStarted | CallDecided) -> list[Block]:
        before = self.rest()
        self._held = event
        return before

    def _started(self, event: RunStarted) -> list[Block]:
        self._began = event.at
        self._calls.clear()
        self._open.clear()
        self._decisions.clear()
        self._displayed = 0
        where = f"{event.sandbox} ({event.tier})" if event.tier else event.sandbox
        head = Line(mark="●", tone="accent", parts=[Part("run "), Part(neutral(event.run_id), "bold")])
        about = " · ".join(filter(None, (neutral(where), moment(event.at))))
        return [*self.rest(), head, Code(text=neutral(event.code), about=about)]

    def _ended_call(self, event: ToolOutput | CallFailed) -> list[Block]:
        held, at, before = self._held, event.at, list[Block]()
        if held is not None and held.call.call_id == event.call_id:
            at, self._held = held.at, None
        else:
            before = self.rest()
        call = self._calls.get(event.call_id) or FunctionCall(call_id=event.call_id, function_name=event.tool_name)
        parts = [*call_parts(call), Part(" → ", "dim"), Part(_outcome(event))]
        if isinstance(held, CallDecided) and not before and self._by[held.by]:
            parts.append(Part(f"  ({self._by[held.by]})", "dim"))
        if event.seconds >= 0.001:
            parts.append(Part(f"  {elapsed_text(event.seconds)}", "dim"))
        mark, tone = outcome_mark(event)
        whole = [*whole_call(call), *whole_outcome(event)]
        return [*before, self._line(at, mark, tone, *parts, whole=whole)]

    def _decided(self, event: CallDecided) -> Line:
        mark, tone, said = decision_words(event.decision, self._by[event.by] or "the agent")
        more: list[tuple[str, str]] = []
        parts = [*call_parts(event.call), Part(f" {said}")]
        if isinstance(event.decision, Edit):
            changed = replace(event.call, args=(), kwargs=event.decision.args)
            parts += [Part(" to "), *call_parts(changed)]
            more = whole_call(changed)
        return self._line(event.at, mark, tone, *parts, whole=[*whole_call(event.call), *more])

    def _paused(self, at: float, pending: Sequence[FunctionCall]) -> list[Block]:
        lost = [self._calls[call_id] for call_id in sorted(self._open)]
        self._open.clear()
        blocks: list[Block] = []
        if pending or not lost:
            said = f"paused: {waiting_words(len(pending))} for a decision"
            blocks = [self._line(at, "‖", "warn", Part(said)), *(asking("?", call, "waits") for call in pending)]
        if lost:
            said = f"paused: nobody knows whether {how_many(len(lost))} ran"
            blocks += [self._line(at, "‖", "warn", Part(said)), *(asking("!", call, "is in doubt") for call in lost)]
        return blocks

    def _done(self, event: CodeExecutionOutput) -> list[Block]:
        result = event.result
        if result is None:
            return [self._line(event.at, "■", "good", Part("done", "good"))]
        blocks: list[Block] = []
        if result.output is not None:
            whole = value_text(result.output, WHOLE)
            more = [("value", whole)] if len(whole) > ERROR else []
            blocks.append(Line(mark="=", tone="bold", parts=[Part(value_text(result.output, ERROR))], whole=more))
        seen = (result.displays or result.images)[self._displayed :]
        blocks += [Picture(file=display, name=neutral(display.name)) for display in seen]
        for file in result.files:
            about = f"  {size_text(len(file.content))}  {neutral(file.mime_type)}"
            blocks.append(Line(mark="+", tone="good", parts=[Part(neutral(file.name)), Part(about, "dim")]))
        return [*blocks, self._line(event.at, "■", "good", Part("done", "good"), Part(usage_words(result), "dim"))]

    def _line(self, at: float, mark: str, tone: Tone, *parts: Part, whole: Sequence[tuple[str, str]] = ()) -> Line:
        return Line(at=max(at - self._began, 0.0), mark=mark, tone=tone, parts=parts, whole=whole)


def joined(blocks: Iterable[Block]) -> Iterable[Block]:
    """Neighbouring pieces of one stream as one piece."""
    last: Said | None = None
    texts: list[str] = []
    for block in blocks:
        if last is not None and isinstance(block, Said) and block.source == last.source:
            texts.append(block.text)
            continue
        if last is not None:
            yield replace(last, text="".join(texts))
            last = None
        if isinstance(block, Said):
            last, texts = block, [block.text]
        else:
            yield block
    if last is not None:
        yield replace(last, text="".join(texts))


def _outcome(event: ToolOutput | CallFailed) -> str:
    return value_text(event.content, VALUE) if isinstance(event, ToolOutput) else cut(neutral(event.error), ERROR)
