"""Parts of a conversation: code a model wrote, and what came of it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import StrEnum

from hatchway.core.results import ExecFile
from hatchway.executors.execution import CodeExecutionResult


class Outcome(StrEnum):
    """How an execution ended, in the words of the Gemini API."""

    OutcomeUnspecified = "OUTCOME_UNSPECIFIED"
    OutcomeOk = "OUTCOME_OK"
    OutcomeFailed = "OUTCOME_FAILED"
    OutcomeDeadlineExceeded = "OUTCOME_DEADLINE_EXCEEDED"


@dataclass(frozen=True, slots=True)
class ExecutableCodePart:
    """Code a model wants to have run."""

    code: str
    """The source."""
    language: str = "python"
    """A lowercase language id."""
    _: KW_ONLY
    id: str = ""
    """Of the model's tool call; empty for a fenced block."""


@dataclass(frozen=True, slots=True)
class CodeExecutionResultPart:
    """What the model is told about code it wrote."""

    outcome: Outcome
    """How it ended."""
    output: str = ""
    """What it printed, or why it did not run."""
    _: KW_ONLY
    files: tuple[ExecFile, ...] = ()
    """Files the code made or changed."""
    id: str = ""
    """Of the `ExecutableCodePart` it answers."""

    @classmethod
    def of(cls, result: CodeExecutionResult, *, id: str = "") -> CodeExecutionResultPart:
        """The part for a result."""
        return cls(_outcome(result), result.combined_output(), files=result.output_files, id=id)


def _outcome(result: CodeExecutionResult) -> Outcome:
    if result.timed_out:
        return Outcome.OutcomeDeadlineExceeded
    return Outcome.OutcomeOk if result.is_success() else Outcome.OutcomeFailed
