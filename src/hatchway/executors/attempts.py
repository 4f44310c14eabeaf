"""Code a model wrote, tried until the executor manages to run it: what the model is told, in any case."""

from __future__ import annotations

from dataclasses import dataclass

from hatchway.core.errors import (
    CodeExecutionError,
    CodeRuntimeError,
    CodeTimeoutError,
    HatchwayError,
    InvalidSetting,
    described,
)
from hatchway.core.results import ExecFile
from hatchway.executors.execution import CodeExecutionInput, CodeExecutionResult
from hatchway.executors.executor import CodeExecutor, InvocationContext
from hatchway.executors.parts import CodeExecutionResultPart, ExecutableCodePart, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """What came of code a model wrote."""

    part: CodeExecutionResultPart
    """What the model is told."""
    error: Exception | None = None
    """How it failed: the executor's error, or the program's end as one; None when it went well."""
    exit_code: int | None = None
    """Of the program; None when there is none to tell."""


async def execute_part(
    executor: CodeExecutor,
    ctx: InvocationContext,
    part: ExecutableCodePart,
    *,
    files: tuple[ExecFile, ...] = (),
    execution_id: str | None = None,
) -> Executed:
    """Run a part, up to `executor.error_retry_attempts` times in all when the executor itself fails.

    A program that fails is a result and is not run again; nor is one whose language or files the executor refuses.
    """
    attempts = max(1, executor.error_retry_attempts)
    for attempt in range(1, attempts + 1):
        try:
            given = CodeExecutionInput(part.code, part.language, input_files=files, execution_id=execution_id)
            return _ended(await executor.execute_code(ctx, given), part.id)
        except InvalidSetting as e:
            return _not_run(e, str(e), part.id)
        except Exception as e:
            if attempt == attempts:
                return _not_run(e, f"sandbox failed: {_message(e)}", part.id)
    raise AssertionError("the last attempt has returned")


def _ended(result: CodeExecutionResult, part_id: str) -> Executed:
    part = CodeExecutionResultPart.of(result, id=part_id)
    if part.outcome is Outcome.OutcomeOk:
        return Executed(part=part, exit_code=result.exit_code)
    kind: type[CodeExecutionError] = CodeTimeoutError if result.timed_out else CodeRuntimeError
    message = result.stderr.rstrip() or f"exit code {result.exit_code}"
    error = kind(message, stdout=result.stdout, stderr=result.stderr, files=result.output_files)
    return Executed(part=part, error=error, exit_code=result.exit_code)


def _not_run(error: Exception, told: str, part_id: str) -> Executed:
    return Executed(part=CodeExecutionResultPart(Outcome.OutcomeFailed, told, id=part_id), error=error)


def _message(error: Exception) -> str:
    if isinstance(error, HatchwayError):
        return str(error)
    told = described(error)
    return f"{told['type']}: {told['message']}"
