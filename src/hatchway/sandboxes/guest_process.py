"""What an execution needs of its guest: the process it runs in, and the channel to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hatchway.core.limits import Limits
from hatchway.core.recording import RecordedAnswer
from hatchway.core.results import ExecFile
from hatchway.core.sandbox import Functions
from hatchway.transports.guest_link import Listener
from hatchway.transports.messages import Again
from hatchway.transports.stdio import StdinStdoutTransport
from hatchway.transports.transcript import Transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """How a guest's process ended."""

    exit_code: int | None = None
    """Its exit code, when it exited."""
    signal: str = ""
    """The signal that killed it, such as `"SIGSEGV"`."""
    limit: str = ""
    """The field of `Limits` it was killed for."""
    is_crash: bool = False
    """The machinery around it died; the code may be innocent."""

    def __str__(self) -> str:
        if self.signal:
            return f"killed by signal {self.signal}"
        return f"exit code {self.exit_code}" if self.exit_code is not None else "nobody knows how"


class GuestOutput(Protocol):
    """Where the code of one process leaves files."""

    async def collected(self, limits: Limits) -> tuple[ExecFile, ...]:
        """The files that are new or changed since the last time, by name.

        Raises:
            CodeLimitError: There are more, or larger ones, than `limits` allow; it has those that were read.
            SandboxCrashed: The host has no room for them.
        """
        ...

    def close(self) -> None:
        """Nobody will ask again. Legal twice."""
        ...


class GuestProcess(Protocol):
    """A process with a guest in it, for one action or for the actions of one session."""

    @property
    def transport(self) -> StdinStdoutTransport:
        """The channel to its guest."""
        ...

    @property
    def output(self) -> GuestOutput | None:
        """Its `/output`; None without a file surface."""
        ...

    @property
    def is_dead(self) -> bool:
        """Whether it takes no more actions."""
        ...

    async def wait_gone(self) -> None:
        """Until everything of it is dead; what is in `output` can still be read."""
        ...

    @property
    def stdout_fd(self) -> int:
        """The read end of its stdout."""
        ...

    @property
    def stderr_fd(self) -> int:
        """The read end of its stderr."""
        ...

    def watch(self, limits: Limits, on_death: Callable[[Death], None]) -> None:
        """An action begins: hold it to its limits, and tell on the running loop when everything of it is dead."""
        ...

    def kill(self) -> None:
        """Kill the guest with all its descendants; `on_death` is told when they are dead. Legal twice."""
        ...

    def retire(self) -> None:
        """As `kill`, for a guest that has done its work: what it left behind can be taken, so there is no hurry."""
        ...

    def has_ended(self) -> bool:
        """Whether the guest itself is dead, though `on_death` was not told yet; False where it cannot be told."""
        ...

    def cpu_seconds(self) -> float:
        """CPU time of the guest and all its descendants, ever; 0.0 where it cannot be told."""
        ...

    def peak_memory(self) -> int:
        """Bytes of memory the guest has had at most; 0 where it cannot be told."""
        ...


class GuestChannel(Protocol):
    """How an execution speaks with its guest; `StdinStdoutTransport` is one."""

    def listen(self, listener: Listener) -> None:
        """Hand what the guest says to `listener`, on the running loop, as it comes."""
        ...

    @property
    def transcript(self) -> Transcript | None:
        """What was said in this execution; None where nobody writes it down."""
        ...

    async def execute(
        self,
        code: str,
        functions: Functions,
        inputs: Mapping[str, Any],
        limits: Limits,
        *,
        is_session: bool,
        again: Again | None = None,
    ) -> asyncio.Future[None] | None:
        """Order the guest to run an action; None when all is written, else a future. Listened to only after this."""
        ...

    def answer(self, value: Any, call_id: str) -> asyncio.Future[None] | None:
        """Answer a call; None when all is written, else a future. Raises ValueNotPortable before anything is sent."""
        ...

    def answer_error(self, error: BaseException, call_id: str) -> asyncio.Future[None] | None:
        """As `answer`, with an error that is raised at the call."""
        ...

    def answer_together(self, answers: Sequence[RecordedAnswer]) -> asyncio.Future[None] | None:
        """As `answer`, several that the guest takes in at once."""
        ...

    def read_available(self) -> None:
        """Take what has arrived without waiting for the loop to notice."""
        ...

    def read_early(self) -> bool:
        """Take what has arrived, if it is worth a look; whether anything had."""
        ...

    def detach(self) -> None:
        """The action has ended: stop listening."""
        ...
