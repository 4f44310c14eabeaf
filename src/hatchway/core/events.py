"""Events: one dated fact of a run each. Every view (terminal, recorder, tests, web) reads these and nothing else.

AgentEvent                     agent_id, run_id, at
├── RunStarted                 an action begins
├── CodeExecutionOutputChunk   a piece of output, as it arrives
├── CodeExecutionDisplay       a picture or table the code showed, as it arrives
├── CallStarted                a call passed the gate and its tool begins
├── ApprovalRequest            a call waits for a decision; answer it with `approve`
├── CallDecided                somebody (tool, rule, callback, person) decided about a call
├── ToolOutput                 a tool returned
├── CallFailed                 a tool raised, timed out or was denied; the code sees the error
├── RunPaused                  the run is stored and waits for decisions
├── RunResumed                 the run goes on, after a pause or a crash
├── CodeExecutionOutput        the action ended well
├── RunFailed                  the action ended in an error
├── ThoughtsChunk              a piece of what a model thinks, as it arrives
├── Thoughts                   what it thought before a reply
├── ResponseChunk              a piece of what a model says, as it arrives
└── Response                   what it said in a reply
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import Decision, as_decision

if TYPE_CHECKING:
    from hatchway.core.results import Display, ExecFile, ExecutionResult

T = TypeVar("T")


def _filled_at_once(cls: type[T]) -> type[T]:
    """Give a frozen dataclass an `__init__` that fills `__dict__` directly.

    Three events tell of every call, and the setter a frozen class goes through for each field is half their cost.
    """
    before, after, lines = ["self"], ["*"], list[str]()
    names: dict[str, Any] = {}
    for each in fields(cls):  # pyright: ignore[reportArgumentType]  # only dataclasses come here
        names[f"_{each.name}"] = each.default_factory if each.default is MISSING else each.default
        is_made = each.default_factory is not MISSING
        is_required = each.default is MISSING and not is_made
        (after if each.kw_only else before).append(each.name if is_required else f"{each.name}=_{each.name}")
        value = f"_{each.name}() if {each.name} is _{each.name} else {each.name}" if is_made else each.name
        lines.append(f"    filled[{each.name!r}] = {value}")
    head = ", ".join([*before, *(after if len(after) > 1 else ())])
    exec(f"def __init__({head}):\n    filled = self.__dict__\n" + "\n".join(lines), names)  # names of our own fields
    cls.__init__ = names["__init__"]
    return cls


@dataclass(frozen=True)
class AgentEvent:
    """The root of all events."""

    agent_id: str = field(default="", kw_only=True)
    """The agent the run belongs to; empty outside an agent."""
    run_id: str = field(default="", kw_only=True)
    """The run this is a fact of."""
    at: float = field(default_factory=time.time, kw_only=True)
    """Seconds since the epoch."""


@dataclass(frozen=True)
class RunStarted(AgentEvent):
    """An action begins."""

    code: str
    sandbox: str = ""
    tier: str = ""


@dataclass(frozen=True)
class CodeExecutionOutputChunk(AgentEvent):
    """A piece of output, as it arrives."""

    text: str
    stream: Literal["stdout", "stderr"] = field(default="stdout", kw_only=True)


@dataclass(frozen=True)
class CodeExecutionDisplay(AgentEvent):
    """A picture, table or formula the code showed, as it arrives."""

    display: Display


@_filled_at_once
@dataclass(frozen=True)
class CallStarted(AgentEvent):
    """A call passed the gate and its tool begins."""

    call: FunctionCall


@_filled_at_once
@dataclass(frozen=True)
class CallDecided(AgentEvent):
    """Somebody decided about a call."""

    call: FunctionCall
    decision: Decision = field(kw_only=True)
    by: Literal["tool", "rule", "callback", "person"] = field(kw_only=True)
    """Who decided."""


def _unanswered() -> asyncio.Future[Decision]:
    return asyncio.get_running_loop().create_future()


@dataclass(frozen=True)
class ApprovalRequest(AgentEvent):
    """A call waits for a decision. The run stands still at it until `approve` is called."""

    tool_name: str
    tool_args: Mapping[str, Any]
    _future: asyncio.Future[Decision] = field(default_factory=_unanswered, repr=False, compare=False)
    call_id: str = field(default="", kw_only=True)

    def approve(self, decision: bool | Decision) -> None:
        """Answer. The first answer counts; a second raises `RuntimeError`."""
        if self._future.done():
            raise RuntimeError(f"the call {self.call_id or self.tool_name} was already decided")
        self._future.set_result(as_decision(decision))

    async def decision(self) -> Decision:
        """The answer, once there is one."""
        return await asyncio.shield(self._future)

    async def approved(self) -> bool:
        """Whether the call may run, once somebody answered."""
        from hatchway.core.decisions import Deny

        return not isinstance(await self.decision(), Deny)


@_filled_at_once
@dataclass(frozen=True)
class ToolOutput(AgentEvent):
    """A tool returned."""

    content: Any
    call_id: str = field(default="", kw_only=True)
    tool_name: str = field(default="", kw_only=True)
    seconds: float = field(default=0.0, kw_only=True)


@dataclass(frozen=True)
class CallFailed(AgentEvent):
    """A tool raised, timed out or was denied; the code sees the error at the call."""

    error: str
    call_id: str = field(default="", kw_only=True)
    tool_name: str = field(default="", kw_only=True)
    denied: bool = field(default=False, kw_only=True)
    seconds: float = field(default=0.0, kw_only=True)


@dataclass(frozen=True)
class RunPaused(AgentEvent):
    """The run waits for decisions about these calls."""

    pending: Sequence[FunctionCall]


@dataclass(frozen=True)
class RunResumed(AgentEvent):
    """The run goes on where it stood."""

    epoch: int = 1
    """How often it was taken up, the start included."""


@dataclass(frozen=True)
class CodeExecutionOutput(AgentEvent):
    """The action ended well."""

    text: str | None
    images: Sequence[ExecFile] = ()
    result: ExecutionResult | None = field(default=None, kw_only=True)
    """The whole result; None when an event comes from storage."""


@dataclass(frozen=True)
class RunFailed(AgentEvent):
    """The action ended in an error."""

    error: Exception


@dataclass(frozen=True)
class ThoughtsChunk(AgentEvent):
    """A piece of what a model thinks, as it arrives."""

    content: str


@dataclass(frozen=True)
class Thoughts(AgentEvent):
    """What a model thought before a reply, whole."""

    content: str


@dataclass(frozen=True)
class ResponseChunk(AgentEvent):
    """A piece of what a model says, as it arrives."""

    content: str


@dataclass(frozen=True)
class Response(AgentEvent):
    """What a model said in a reply, whole; the last one of a turn is its answer."""

    content: str
