"""What a tool may know at a vendor: the turn it serves, and what it gives back."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from hatchway.core.calls import CallContext
from hatchway.core.events import AgentEvent, CodeExecutionOutput, RunFailed, RunResumed, RunStarted
from hatchway.core.results import ExecFile, Tier
from hatchway.hosted.code import HostedCodeCall
from hatchway.hosted.events import HostedCodeEnded, HostedCodeStarted
from hatchway.hosted.here import Here
from hatchway.mode.sandbox_code import ASKER
from hatchway.mode.workbench import End

if TYPE_CHECKING:
    from hatchway.hosted.adapter import HostedAdapter
    from hatchway.hosted.session import HostedSession

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class ToolResult(Generic[ResultT]):
    """What a tool gives: words for the model, a value for the program."""

    message: str
    """What the model reads."""
    value: ResultT | None = None
    """The typed payload."""
    success: bool | None = True
    """Whether it went well; None: the vendor does not say."""


class EventBus:
    """Events to whoever listens, in order, at once."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[AgentEvent], None]] = []

    def subscribe(self, listener: Callable[[AgentEvent], None]) -> Callable[[], None]:
        """Have each event told from now on; what is returned ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def publish(self, event: AgentEvent) -> None:
        """Tell an event."""
        for listener in tuple(self._listeners):
            listener(event)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMetadata:
    """The request a tool works for."""

    text: str = ""
    """The user's words."""
    instructions: str = ""
    """What the model was told before."""
    model: str = ""
    name: str = ""
    """What the caller named the request; for logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext(CallContext):
    """The call, and the turn it belongs to. Outside of a vendor's turn there is no adapter and no session.

    All fields have defaults: a test of a handler gives `ToolContext()`.
    """

    run_id: str = ""
    call_id: str = ""
    idempotency_key: str = ""
    deadline: float | None = None
    prompt: PromptMetadata = field(default_factory=PromptMetadata)
    adapter: HostedAdapter | None = None
    session: HostedSession | None = None
    event_bus: EventBus = field(default_factory=EventBus)


@dataclass(slots=True, kw_only=True)
class Turn:
    """One request of a user, with all that goes to and fro until it is answered."""

    prompt: PromptMetadata
    adapter: HostedAdapter
    session: HostedSession
    event_bus: EventBus
    deadline: float | None = None
    """`time.monotonic()` value at which it is over."""
    streams: bool = False
    run_id: str = ""
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    """Of this request only: tool choice, output schema."""
    files: tuple[ExecFile, ...] = ()
    """Of this request only: brought to where the code finds them."""
    here: Here = field(default_factory=Here)
    """What its code did here, where a sandbox of ours runs it."""
    uses: dict[str, ToolContext] = field(default_factory=dict[str, ToolContext])
    """The context of each call, one and the same for whoever handles it."""

    def context(self, call_id: str, given: CallContext | None = None) -> ToolContext:
        """The context of a call: made once, then the very same."""
        if call_id not in self.uses:
            known = given or CallContext(run_id=self.run_id, call_id=call_id, idempotency_key="", deadline=None)
            self.uses[call_id] = _context(known, self)
        return self.uses[call_id]

    @property
    def session_name(self) -> str:
        """Code that runs here keeps its state as long as the session lasts."""
        return self.session.session_id

    @property
    def code_files(self) -> tuple[ExecFile, ...]:
        """For code that runs here."""
        return tuple(self.session.here.values())

    def begun(self, action: str, sandbox: str) -> HostedCodeCall:
        """Code is about to run here."""
        call = self.here.begin(action, sandbox)
        self.event_bus.publish(HostedCodeStarted(call, run_id=self.run_id))
        return call

    def hear(self, event: AgentEvent) -> None:
        """What happens to code that runs here is told like all else."""
        match event:
            case RunStarted(tier=tier):
                self.here.tier = cast("Tier", tier)
            case CodeExecutionOutput() | RunFailed():
                pass  # `ended` tells it; in the events of a request these are the end of the request
            case _:
                self.event_bus.publish(event)

    def ended(self, begun: HostedCodeCall, end: End) -> None:
        """Code ended here."""
        self.event_bus.publish(HostedCodeEnded(self.here.end(begun, end), run_id=self.run_id))

    def left(self) -> float | None:
        """Seconds until the deadline; None without one."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())


def _context(call: CallContext, turn: Turn) -> ToolContext:
    deadlines = [at for at in (call.deadline, turn.deadline) if at is not None]
    return ToolContext(
        run_id=call.run_id,
        call_id=call.call_id,
        idempotency_key=call.idempotency_key,
        deadline=min(deadlines, default=None),
        prompt=turn.prompt,
        adapter=turn.adapter,
        session=turn.session,
        event_bus=turn.event_bus,
    )


TURN: ContextVar[Turn | None] = ContextVar("hatchway_hosted_turn", default=None)
"""The turn that is under way in this task; the tasks and threads that serve its calls inherit it."""


@contextmanager
def serving(turn: Turn) -> Generator[None]:
    """Whatever this task does meanwhile is done for the turn."""
    tokens = TURN.set(turn), ASKER.set(turn)
    try:
        yield
    finally:
        TURN.reset(tokens[0])
        ASKER.reset(tokens[1])


def tool_context(call: CallContext) -> ToolContext:
    """The context of a call made through the gate, at a vendor or in a sandbox of ours."""
    turn = TURN.get()
    if turn is not None:
        return turn.context(call.call_id, call)
    return ToolContext(
        run_id=call.run_id, call_id=call.call_id, idempotency_key=call.idempotency_key, deadline=call.deadline
    )


def heard(event: AgentEvent) -> None:
    """An event of the mode: it belongs to the turn of the task it happens in."""
    turn = TURN.get()
    if turn is None:
        return
    if isinstance(event, RunStarted | RunResumed):
        turn.run_id = event.run_id
    turn.event_bus.publish(event)
