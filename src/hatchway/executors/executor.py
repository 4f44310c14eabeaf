"""The contract every executor keeps: one piece of code in, one result out."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from hatchway.core.sandbox import OnOutput
from hatchway.executors.execution import CodeExecutionInput, CodeExecutionResult


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationContext:
    """On whose behalf code runs. Whoever calls an executor directly gives `InvocationContext()`."""

    invocation_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    """One turn of an agent, from the user's words to the answer."""
    agent_name: str = ""
    """The agent whose model wrote the code; empty without one."""
    on_output: OnOutput | None = field(default=None, repr=False, compare=False)
    """Sees stdout and stderr as they arrive, where the executor can tell so early."""


class CodeExecutor(ABC):
    """Runs the code a model wrote. Many executions may run at once."""

    stateful: bool = False
    """Whether names persist between the executions of one `execution_id`."""
    error_retry_attempts: int = 2
    """Attempts in all, at least 1, when the executor itself fails; 2 means one retry. A failed program is no error."""
    timeout: float | None = 30.0
    """Seconds one execution may take; None for no limit."""
    languages: tuple[str, ...] = ("python",)
    """The language ids it takes, most fitting first."""

    def prompt(self) -> str:
        """What else a model must know to write code for it, such as what the code may call; empty for nothing."""
        return ""

    @abstractmethod
    async def execute_code(self, ctx: InvocationContext, input: CodeExecutionInput) -> CodeExecutionResult:
        """Run code to its end; made once, not `error_retry_attempts` times: that is for the loop that calls it.

        A program that fails is a result with its exit code. One that runs out of time is a result with
        `timed_out`, no exit code and "timed out" in `stderr`; it is dead by then, with all its descendants.

        Raises:
            InvalidSetting: A language it does not know, or input files it cannot stage.
            SandboxUnavailable: The code cannot be started here: no interpreter, no engine, no image.
            SandboxCrashed, TransportError: What runs the code died, not the code.
        """

    async def aclose(self) -> None:
        """End everything of this executor that still runs. Legal twice."""
        return None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
