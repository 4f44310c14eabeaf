"""Dialogue: what a person and an agent said and did, one thing after the other, told as blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import Allow, Edit, NotRun, Ran, Settlement
from hatchway.core.events import (
    AgentEvent,
    ApprovalRequest,
    CallDecided,
    CallFailed,
    CallStarted,
    Cancelled,
    CodeExecutionOutput,
    Compacted,
    Response,
    ResponseChunk,
    Retrying,
    RunFailed,
    RunResumed,
    RunStarted,
    Thoughts,
    ThoughtsChunk,
    ToolOutput,
)
from hatchway.trace.blocks import WHO, Block, Code, Line, Part, Prose, Tone
from hatchway.trace.record import Record
from hatchway.trace.text import call_source, cut, elapsed_text, neutral, value_text
from hatchway.trace.wording import VALUE, WHOLE, call_parts, decision_words, whole_call

MAIN = "main"
"""The agent a person talks with; what others say is marked with their name."""
_ENDS = {"rejected": "refused: the turn is over", "max_turns": "the turn had as many rounds as it may"}


class Dialogue:
    """Takes the prompts of a person and the events of an agent and its subagents."""

    def __init__(self) -> None:
        self._runs: dict[str, Record] = {}
        self._asked: list[str] = []
        self._decided: set[str] = set()
        self._seen: set[str] = set()
        self._begun: set[str] = set()
        self._calls: dict[str, FunctionCall] = {}
        self._agent = MAIN

    def said(self, prompt: str, *, is_code: bool = False) -> list[Block]:
        """A prompt; where the person writes the actions, it is code."""
        self._agent = MAIN
        if is_code:
            return [Code(text=neutral(prompt), what="you")]
        return [Prose(text=neutral(prompt), who="you")]

    def allowed(self, request: ApprovalRequest, *, is_shown: bool = False) -> list[Block]:
        """Something that nobody needs to be asked about. What code does is told when it does it.

        Args:
            request: What it is.
            is_shown: Its code stands there already: the person wrote it.
        """
        self._decided.add(request.call_id)
        self._seen.add(request.call_id)
        self._note(request)
        if request.kind == "code" and is_shown:
            self._asked.append(str(request.tool_args.get("code", "")))
        return [self._tool(request, "allowed")] if request.kind == "tool" else []

    def decided(self, request: ApprovalRequest, decision: Settlement, *, by: str = "you") -> list[Block]:
        """What somebody answered to a request."""
        self._decided.add(request.call_id)
        if not isinstance(decision, Edit):  # what was changed is told as it ran
            self._seen.add(request.call_id)
        self._note(request)
        what = "the action" if request.kind == "code" else neutral(request.tool_name)
        if isinstance(decision, Ran | NotRun):
            mark, tone, said = "◆", "accent", "did run" if isinstance(decision, Ran) else "did not run"
        else:
            mark, tone, said = decision_words(decision, by)
        return [Line(mark=mark, tone=tone, parts=[Part(what, "bold"), Part(f" {said}")])]

    def told(self, event: AgentEvent) -> list[Block]:
        """The blocks of one event; pieces of a reply have none, its whole has."""
        blocks = self._blocks(event)
        return [*self.speaks(event.agent_id), *blocks] if blocks else []

    def speaks(self, agent_id: str) -> list[Block]:
        """Who speaks from now on, where that was somebody else before."""
        agent = agent_id or MAIN
        if agent == self._agent:
            return []
        self._agent = agent
        return [Line(mark=WHO, tone="accent", parts=[Part(neutral(agent), "bold")])]

    def _blocks(self, event: AgentEvent) -> list[Block]:
        match event:
            case ResponseChunk() | ThoughtsChunk():
                return []
            case Response(content=text):
                return [Prose(text=neutral(text))] if text.strip() else []
            case Thoughts(content=text):
                return [_folded("∴", "dim", [], text, "thoughts")]
            case ApprovalRequest():
                return self._asks(event)
            case Retrying() | Compacted() | Cancelled():
                return [_note(event)]
            case CallStarted(run_id="", call=call):
                self._calls[call.call_id] = call
                self._record(event).note(call)
                return []
            case ToolOutput(run_id=""):
                return [self._gave(event)]
            case CallDecided() if event.call.call_id in self._decided or isinstance(event.decision, Allow):
                self._record(event).note(event.call)
                return []  # told already, or allowed like everything nobody was asked about
            case CallFailed(denied=True, run_id="") if event.call_id in self._decided:
                return []  # the person who said no has read it
            case _:
                return self._of_run(event)

    def _of_run(self, event: AgentEvent) -> list[Block]:
        blocks = self._record(event).told(event)
        if not event.run_id:  # a call of the model: no run has a beginning to count from
            return [replace(block, at=None) if isinstance(block, Line) else block for block in blocks]
        if isinstance(event, RunResumed):
            return [*blocks, *self._action(event)]
        if isinstance(event, RunStarted):
            self._begun.add(event.run_id)
            if shown := event.code in self._asked:
                self._asked.remove(event.code)
            return [block for block in blocks if isinstance(block, Code) and not shown]
        if isinstance(event, CodeExecutionOutput | RunFailed):
            self._runs.pop(event.run_id)
        return [*_saved(event), *blocks] if isinstance(event, CodeExecutionOutput) else blocks

    def _gave(self, event: ToolOutput) -> Line:
        """What a tool of the model gave; with what it was called with, unless that stands above."""
        call = self._calls.pop(event.call_id, None)
        named, more = [Part(neutral(event.tool_name), "bold")], list[tuple[str, str]]()
        if call is not None and event.call_id not in self._seen:
            named, more = call_parts(call), whole_call(call)
        content = event.content if isinstance(event.content, str) else value_text(event.content, WHOLE)
        line = _folded("✓", "good", [*named, Part(" → ", "dim")], content, "value")
        return replace(line, whole=[*more, *line.whole])

    def _action(self, event: RunResumed | ApprovalRequest) -> list[Block]:
        """The code of a run that began in a process that is gone, once."""
        if not event.code or event.run_id in self._begun:
            return []
        self._begun.add(event.run_id)
        return [Code(text=neutral(event.code))]

    def _note(self, request: ApprovalRequest) -> None:
        """Keep the arguments of a call that no event begins: the model makes it, or it began before a crash."""
        if request.kind == "tool" or (request.in_doubt and request.run_id):
            call = FunctionCall(call_id=request.call_id, function_name=request.tool_name, kwargs=request.tool_args)
            self._record(request).note(call)

    def _record(self, event: AgentEvent) -> Record:
        return self._runs.setdefault(event.run_id, Record(event.at, callback=""))

    def _asks(self, request: ApprovalRequest) -> list[Block]:
        before = self._runs[request.run_id].rest() if request.run_id in self._runs else []
        if request.kind == "code":
            code = str(request.tool_args.get("code", ""))
            self._asked.append(code)
            return [*before, Code(text=neutral(code), about="asks to run")]
        why = "asks, and may have run before a crash" if request.in_doubt else "asks for approval"
        return [*before, *self._action(request), self._tool(request, why)]

    def _tool(self, request: ApprovalRequest, about: str) -> Code:
        name = neutral(request.tool_name)
        if request.diff:
            return Code(text=neutral(request.diff).rstrip("\n"), about=about, what=name, language="diff")
        return Code(text=call_source(name, request.tool_args, WHOLE)[0], about=about, what=name)


def _saved(event: CodeExecutionOutput) -> list[Block]:
    """Where the pictures of an action lie now."""
    paths = [neutral(str(image)) for image in event.images if isinstance(image, Path)]
    return [Line(mark="+", tone="good", parts=[Part(path), Part("  saved", "dim")]) for path in paths]


def _note(event: Retrying | Compacted | Cancelled) -> Line:
    match event:
        case Retrying(reason=reason, seconds=seconds):
            again = f"{cut(neutral(reason), VALUE)}; asks again in {elapsed_text(seconds)}"
            return Line(mark="↻", tone="warn", parts=[Part(again)])
        case Compacted(before=before, after=after):
            said = f"the conversation was summed up: {before:,} → {after:,} tokens"
            return Line(mark="≡", tone="dim", parts=[Part(said, "dim")])
        case Cancelled(reason=reason):
            return Line(mark="⊘", tone="warn", parts=[Part(_ENDS.get(reason) or neutral(reason), "warn")])


def _folded(mark: str, tone: Tone, parts: Sequence[Part], text: str, label: str) -> Line:
    """Text on one line, and whole where it is longer."""
    line = " ".join(neutral(text).split())
    is_whole = len(line) <= VALUE and "\n" not in text.strip()
    said = Part(cut(line, VALUE), "" if parts else "dim")
    return Line(mark=mark, tone=tone, parts=[*parts, said], whole=[] if is_whole else [(label, neutral(text))])
