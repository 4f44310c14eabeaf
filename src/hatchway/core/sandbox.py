"""The contract every sandbox keeps: a sandbox starts executions, an execution is driven by pulling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Literal, Self

from hatchway.core.calls import FunctionCall, FunctionSignature, Waiting
from hatchway.core.constraints import CodeConstraints
from hatchway.core.limits import Limits
from hatchway.core.network import NetworkRules
from hatchway.core.recording import RecordedAnswer, Recording
from hatchway.core.results import Display, ExecutionResult, Tier

Functions = Sequence[FunctionSignature | str]
"""What the code may call; a bare name is a sync function of any arguments."""
OnOutput = Callable[[Literal["stdout", "stderr"], str], None]
"""Called on the event loop with each piece of output as it arrives."""
OnDisplay = Callable[[Display], None]
"""Called on the event loop with each thing the code shows, as it arrives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """Whether a backend can be used on this machine, found out by doing what a launch does."""

    state: Literal["usable", "installed_but_unusable", "missing"]
    """Three values: a package that is there but cannot run is not `usable`."""
    tier: Tier | None = None
    """The wall a launch would get; None when there is none to get."""
    reason: str = ""
    """Why it is not usable, or what is weaker than it could be."""
    hint: str = ""
    """The exact next command."""


class CodeExecution(ABC):
    """The handle of one running action. The host pulls; the code stands still at each call until answered."""

    @abstractmethod
    async def next(self) -> FunctionCall | Waiting | ExecutionResult:
        """The next thing that happens in the code.

        May be awaited while calls are unanswered: parallel calls arrive one by one, then `Waiting` says that the
        code cannot go on until one is answered. Asked again while nothing changed, it gives `Waiting` again.
        A loop that answers each call before asking again never sees `Waiting`. After `restore`, the pending calls
        come again with their old ids. After the end, the same result or error is given again.

        Raises:
            CodeSyntaxError: The code does not parse; raised by the first `next`.
            CodeRuntimeError: The code raised or its interpreter died.
            CodeTimeoutError: `Limits.wall_seconds` is over; the code is dead.
            CodeLimitError: Another limit was exceeded; the code is dead.
            SandboxCrashed: The sandbox's machinery died.
            TransportError: The channel broke.
        """

    def poll(self) -> FunctionCall | Waiting | ExecutionResult | None:
        """What `next` would give at once; None when it would have to wait, or cannot tell.

        A driver uses it to answer a lone call without scheduling a task for it. Default: None.
        """
        return None

    def watch_displays(self, on_display: OnDisplay) -> None:
        """Have each thing the code shows told as it arrives; what has come already is told at once.

        Default: nothing is told; the result has all of them, where the backend has any.
        """

    @abstractmethod
    async def provide_result(self, value: Any, *, call_id: str | None = None) -> None:
        """Answer a call with a value; it is copied in.

        Args:
            value: What the call returns inside the code.
            call_id: Which call; may be omitted when exactly one is pending.

        Raises:
            ValueNotPortable: The value cannot cross; the call stays pending.
            InvalidSetting: No such pending call, or several and no `call_id`.
        """

    @abstractmethod
    async def provide_error(self, error: BaseException, *, call_id: str | None = None) -> None:
        """Answer a call with an error, raised inside the code at the call and catchable there.

        `ToolError` and `ToolDenied` keep their class where the guest has them (both are `RuntimeError`s), builtin
        exceptions keep theirs, any other class arrives as `ToolError` whose message begins with the class name.

        Raises:
            InvalidSetting: No such pending call, or several and no `call_id`.
        """

    async def provide_answers(self, answers: Sequence[RecordedAnswer]) -> None:
        """Answer several calls so that the code takes the answers in at once, as it did when they were recorded.

        Default: one after the other.
        """
        for answer in answers:
            if answer.error is not None:
                await self.provide_error(answer.error, call_id=answer.call_id)
            else:
                await self.provide_result(answer.value, call_id=answer.call_id)

    def trail(self, call_id: str) -> Mapping[str, Any]:
        """What a call told about the way to it, for `RecordedCall.trail`; ask before the call is answered."""
        return {}

    @property
    def ran(self) -> float:
        """Seconds the code has run so far, waiting not counted; 0.0 where the backend cannot tell."""
        return 0.0

    @abstractmethod
    def dump(self) -> bytes | None:
        """The paused execution as signed bytes, with all its pending calls; legal while `Waiting`.

        None: this backend cannot. The execution stays usable.

        Raises:
            RuntimeError: The execution is not waiting.
        """

    is_dump_exact: ClassVar[bool] = True
    """Whether `dump` has the state itself; otherwise restoring runs the code again."""

    @abstractmethod
    async def cancel(self) -> None:
        """Kill the code. It is dead, with all its descendants, when this returns. Legal at any time, also twice."""


class CodeSession(ABC):
    """A kept interpreter: names, imports and functions persist from action to action."""

    @abstractmethod
    async def execute(
        self,
        code: str,
        functions: Functions = (),
        *,
        inputs: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        on_output: OnOutput | None = None,
    ) -> CodeExecution:
        """As `CodeSandbox.execute`, with the state kept. One action at a time.

        Raises:
            RuntimeError: The previous action has not ended.
            SandboxCrashed: The session is gone (its interpreter died or was killed); open a new one.
        """

    async def replay(self, recording: Recording, *, on_output: OnOutput | None = None) -> CodeExecution | None:
        """As `CodeSandbox.replay`, with the state kept."""
        return None

    @property
    def is_gone(self) -> bool:
        """Whether its interpreter is known to be dead, so that no further action can run. Default: not known."""
        return False

    async def dump(self) -> bytes | None:
        """The idle session as signed bytes for `CodeSandbox.restore_session`. None: this backend cannot."""
        return None


class CodeSandbox(ABC):
    """Where code runs. Capabilities (mounts, domains, packages, env, python) are constructor arguments."""

    name: ClassVar[str]
    """The registered name, such as `"monty"`."""
    constraints: CodeConstraints
    """Which Python it runs."""
    tier: Tier
    """How strong its wall is here."""
    network: NetworkRules = NetworkRules()
    """What the code may reach; nothing by default. Where something is granted, the mode offers `fetch`."""

    @abstractmethod
    async def execute(
        self,
        code: str,
        functions: Functions = (),
        *,
        inputs: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        on_output: OnOutput | None = None,
    ) -> CodeExecution:
        """Start code in a fresh interpreter. Many may run at once.

        Args:
            code: Python source. Top-level `await` is allowed.
            functions: What the code may call.
            inputs: Values bound as global names before the code starts.
            limits: Defaults to `Limits()`.
            on_output: Sees stdout and stderr as they arrive.

        Raises:
            ValueNotPortable: An input cannot cross.
            SandboxUnavailable: The sandbox cannot be started here.
            SandboxCrashed: Its machinery died while starting.
        """

    @abstractmethod
    def session(self, *, limits: Limits | None = None) -> AbstractAsyncContextManager[CodeSession]:
        """A kept interpreter; `limits` are the default of each action in it."""

    async def replay(self, recording: Recording, *, on_output: OnOutput | None = None) -> CodeExecution | None:
        """Run a recorded action again, to where it stood; one without calls is started, so that it can be repeated.

        Its calls are matched by identity and answered as recorded; the pending ones are handed out by `next` with their
        old ids. No other call is handed out before the recording is through. None: this backend cannot repeat code.

        Raises:
            ReplayDiverged: The code went another way. It is dead, and nothing was handed out.
            CheckpointRefused: What the recording needs is not here; the reason says what.
        """
        return None

    @property
    def facts(self) -> Mapping[str, str]:
        """What a recording made here needs to be repeated elsewhere: versions, hash seed. Holds no secret."""
        return {}

    async def restore(self, checkpoint: bytes, *, on_output: OnOutput | None = None) -> CodeExecution | None:
        """The execution a `dump` came from, standing at its pending calls. None: not ours, damaged, expired."""
        return None

    def replay_session(
        self, actions: Sequence[Recording], *, limits: Limits | None = None
    ) -> AbstractAsyncContextManager[CodeSession | None]:
        """A session in which these actions are run again, each to its end. Gives None: this backend cannot.

        Raises, when it is entered:
            ReplayDiverged, CheckpointRefused: As `replay`.
        """
        return _no_session()

    def restore_session(self, checkpoint: bytes) -> AbstractAsyncContextManager[CodeSession | None]:
        """The session a `CodeSession.dump` came from; gives None when the bytes are not ours or damaged."""
        return _no_session()

    async def type_check(self, code: str, prefix_code: str = "") -> None:
        """Check the code against the stubs in `prefix_code` without running it. Default: nothing is checked.

        Raises:
            CodeTypeError: A wrong argument, an undefined name, an unresolved import.
            CodeSyntaxError: The code does not parse.
        """

    @classmethod
    @abstractmethod
    def probe(cls) -> Availability:
        """Whether this backend works here, by the same check a launch does. Never raises."""

    async def aclose(self) -> None:
        """Kill everything of this sandbox that still runs and give its resources back. Legal twice."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class _no_session(AbstractAsyncContextManager["CodeSession | None"]):
    async def __aexit__(self, *exc_info: object) -> None:
        return None

    async def __aenter__(self) -> CodeSession | None:
        return None
