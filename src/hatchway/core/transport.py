"""The contract of transports: how a call leaves the sandbox and its answer goes back in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hatchway.core.calls import FunctionCall
from hatchway.core.errors import CodeRuntimeError, CodeSyntaxError
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import Functions


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportConfig:
    """What the sandbox side needs to use the channel."""

    stub_code: str
    """Python source (standard library only) that defines the tools inside; it runs before the model's code."""
    env_vars: Mapping[str, str] = field(default_factory=dict[str, str])
    """Environment variables the source reads."""


@dataclass(frozen=True, slots=True)
class Idle:
    """The guest says it cannot go on until a call is answered; the host checks the claim."""

    answers: int
    """How many answers the guest had received when it said so: a claim made before the last one is stale."""


@dataclass(frozen=True, slots=True)
class Completed:
    """The code ended; `output` is the value of its last expression."""

    output: Any = None


FailureKind = Literal[
    "syntax",
    "runtime",
    "value",
    "value_bytes",
    "memory",
    "processes",
    "open_files",
    "file_bytes",
    "disk_bytes",
    "disk_files",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The code ended in an error."""

    kind: FailureKind
    """`value`: the output cannot cross the wall. `memory`: the code raised MemoryError out of its limit. The others
    name a field of `Limits` whose refusal the code did not catch."""
    message: str
    """The traceback, with the code's own class and line numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Displayed:
    """The code showed something."""

    mime_type: str
    """One of `DISPLAY_TYPES`; the content begins as such a thing does."""
    content: bytes
    """The whole of it."""
    text: str
    """Its `repr`."""


Received = FunctionCall | Idle | Displayed | Completed | Failed
"""Everything a guest can say. None of it carries authority."""


class CallbackTransport(ABC):
    """One channel for one execution at a time: calls come out, answers go in.

    A call may wait for hours; no transport ends it by a read timeout.
    """

    @abstractmethod
    async def start(self, available_functions: Functions) -> TransportConfig:
        """Open the channel for code that may call these functions.

        Raises:
            TransportError: The channel cannot be opened.
        """

    @abstractmethod
    async def receive(self) -> Received:
        """The next thing the guest says, checked for shape; values are decoded.

        Raises:
            TransportError: The channel broke or the guest sent what is not a message.
            EOFError: The guest closed its end.
        """

    def line(self, call: FunctionCall) -> bytes | None:
        """The line of the call that `receive` gave last, as the guest wrote it, for running its code again.

        None: this transport keeps none, and code that called over it is run again only as the host saw it.
        """
        return None

    @abstractmethod
    async def send_result(self, value: Any, *, call_id: str | None = None) -> None:
        """Answer a call; `call_id` may be omitted when exactly one is pending.

        Raises:
            ValueNotPortable: The value cannot cross; the call stays pending.
            InvalidSetting: No such pending call, or several and no `call_id`.
            TransportError: The channel broke.
        """

    @abstractmethod
    async def send_error(self, error: BaseException, *, call_id: str | None = None) -> None:
        """Answer a call with an error, raised at the call inside the code.

        Raises:
            InvalidSetting: No such pending call, or several and no `call_id`.
            TransportError: The channel broke.
        """

    @abstractmethod
    async def stop(self) -> None:
        """Close the channel. Legal twice."""

    async def wait_for_call(self) -> FunctionCall:
        """The next call.

        Raises:
            EOFError: The code ended instead.
            TransportError: The channel broke.
        """
        while True:
            match await self.receive():
                case FunctionCall() as call:
                    return call
                case Idle() | Displayed():
                    continue
                case Completed() | Failed():
                    raise EOFError("the code ended without another call")

    async def wait_for_completion(self) -> ExecutionResult:
        """The end of the code, once no more calls come.

        Raises:
            CodeSyntaxError, CodeRuntimeError: The code ended in an error.
            RuntimeError: A call came instead: answer it first.
            TransportError: The channel broke.
        """
        while True:
            match await self.receive():
                case FunctionCall() as call:
                    raise RuntimeError(f"the code called {call.function_name}: answer call {call.call_id} first")
                case Idle() | Displayed():
                    continue
                case Completed(output=output):
                    return ExecutionResult(output=output)
                case Failed(kind="syntax", message=message):
                    raise CodeSyntaxError(message)
                case Failed(message=message):
                    raise CodeRuntimeError(message)
