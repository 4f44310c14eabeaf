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
├── Response                   what it said in a reply
├── Retrying                   a model did not answer; it is asked again soon
├── Compacted                  the conversation grew too long and was summed up
└── Cancelled                  a turn ended before its answer
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import Decision, Deny, Edit, Later, NotRun, Ran, Settlement, as_settlement
from hatchway.core.filled import filled_at_once

if TYPE_CHECKING:
    from pathlib import Path

    from hatchway.core.results import Display, ExecFile, ExecutionResult


@dataclass(frozen=True)
class AgentEvent:
    """The root of all events."""

    agent_id: str = field(default="", kw_only=True)
    """The agent the run belongs to; empty outside an agent."""
    run_id: str = field(default="", kw_only=True)
    """The run this is a fact of."""
    at: float = field(default_factory=time.time, kw_only=True)
    """Seconds since the epoch."""


Emit = Callable[[AgentEvent], None]
"""Sees each event as it happens."""


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


@filled_at_once
@dataclass(frozen=True)
class CallStarted(AgentEvent):
    """A call passed the gate and its tool begins."""

    call: FunctionCall


@filled_at_once
@dataclass(frozen=True)
class CallDecided(AgentEvent):
    """Somebody decided about a call."""

    call: FunctionCall
    decision: Decision = field(kw_only=True)
    by: Literal["tool", "rule", "callback", "person"] = field(kw_only=True)
    """Who decided."""


def _unanswered() -> asyncio.Future[Settlement | Later]:
    return asyncio.get_running_loop().create_future()


@dataclass(frozen=True)
class ApprovalRequest(AgentEvent):
    """A code action or a call waits for a decision. It stands still until `approve` is called."""

    tool_name: str
    tool_args: Mapping[str, Any]
    _future: asyncio.Future[Settlement | Later] = field(default_factory=_unanswered, repr=False, compare=False)
    call_id: str = field(default="", kw_only=True)
    kind: Literal["code", "call", "tool"] = field(default="call", kw_only=True)
    """A whole code action, a call the code makes, or a call the model makes itself."""
    diff: str = field(default="", kw_only=True)
    """What a file edit changes, as a unified diff; empty for everything else."""
    in_doubt: bool = field(default=False, kw_only=True)
    """A crash left it open whether it ran already: allowed, it runs (again); `Ran(value)` says that it did."""
    code: str = field(default="", kw_only=True)
    """Of a call in doubt: the action it was made by, for whoever has not seen the run begin."""

    def approve(
        self, decision: bool | Settlement | Later = True, reason: str = "", *, edit: Mapping[str, Any] | None = None
    ) -> None:
        """Answer. The first answer counts.

        Args:
            decision: True, False, or a decision of its own; `Later()` pauses until somebody resumes.
            reason: With False: why, told to the model.
            edit: All arguments by name, to run with instead.

        Raises:
            RuntimeError: It was answered already.
            TypeError: No such decision, a reason that is no text, or one about a call in doubt where there is no doubt.
        """
        if self._future.done():
            raise RuntimeError(f"the call {self.call_id or self.tool_name} was already decided")
        if not isinstance(cast(Any, reason), str):
            raise TypeError(f"the reason of a no is text for the model, not {reason!r:.80}")
        answer: bool | Settlement | Later = Deny(reason.strip()) if decision is False else decision
        if isinstance(answer, Later):
            return self._future.set_result(answer)
        settled = as_settlement(Edit(edit) if edit is not None and decision is True else answer)
        if isinstance(settled, Ran | NotRun) and not self.in_doubt:
            raise TypeError(f"the call {self.call_id or self.tool_name} is not in doubt: allow, deny or edit it")
        self._future.set_result(settled)

    def withdraw(self) -> None:
        """Say that nobody waits for the answer any more. Legal after an answer."""
        self._future.cancel()

    @property
    def is_open(self) -> bool:
        """Whether somebody waits for the answer."""
        return not self._future.done()

    async def closed(self) -> None:
        """Return when there is an answer, or nobody waits for one any more."""
        await asyncio.wait([self._future])

    async def settlement(self) -> Settlement | Later:
        """The answer, once there is one."""
        return await asyncio.shield(self._future)

    async def decision(self) -> Decision | Later:
        """The answer, once there is one.

        Raises:
            TypeError: It was answered as if it were in doubt.
        """
        answer = await self.settlement()
        if isinstance(answer, Ran | NotRun):
            raise TypeError(f"the call {self.call_id or self.tool_name} is not in doubt: allow, deny or edit it")
        return answer

    async def approved(self) -> bool:
        """Whether the call may run, once somebody answered."""
        return not isinstance(await self.settlement(), Deny | Later)


@filled_at_once
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
    code: str = field(default="", kw_only=True)
    """The action, for whoever has not seen the run begin."""


@dataclass(frozen=True)
class CodeExecutionOutput(AgentEvent):
    """The action ended well."""

    text: str | None
    images: Sequence[ExecFile | Path] = ()
    """The pictures it showed; an agent has saved them, and gives their paths."""
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


@dataclass(frozen=True)
class Retrying(AgentEvent):
    """A model did not answer, or broke off; pieces of that reply count for nothing, and it is asked again."""

    reason: str
    seconds: float
    """How long until then."""


@dataclass(frozen=True)
class Compacted(AgentEvent):
    """The conversation grew too long for the model, and what lies behind was summed up."""

    before: int
    """Tokens before, about."""
    after: int
    """Tokens after, about."""


@dataclass(frozen=True)
class Cancelled(AgentEvent):
    """A turn ended before its answer; what it had produced is kept."""

    reason: str
    """`"cancelled"`, `"rejected"`, or `"max_turns"`."""
