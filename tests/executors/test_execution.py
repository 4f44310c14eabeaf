"""The values of an execution: what they refuse, how they read, and that they survive as JSON."""

import base64
import json

import pytest
from pydantic import TypeAdapter, ValidationError

from hatchway.core.errors import InvalidSetting
from hatchway.executors import (
    CodeExecutionInput,
    CodeExecutionResult,
    CodeExecutionResultPart,
    CodeExecutor,
    ExecFile,
    ExecutableCodePart,
    InvocationContext,
    Outcome,
)

BYTES = bytes(range(256))


@pytest.mark.parametrize(
    ("stdout", "stderr", "combined"),
    [
        ("", "", ""),
        ("out\n", "", "out\n"),
        ("", "err\n", "err\n"),
        ("out\n", "err\n", "out\n--- stderr ---\nerr\n"),
        ("out", "err", "out\n--- stderr ---\nerr"),
    ],
)
def test_combined_output_has_a_divider_only_between_two(stdout: str, stderr: str, combined: str) -> None:
    assert CodeExecutionResult(stdout=stdout, stderr=stderr).combined_output() == combined


@pytest.mark.parametrize(
    ("exit_code", "stderr", "success"),
    [(0, "", True), (0, "a warning", True), (1, "", False), (137, "", False), (None, "", True), (None, "gone", False)],
)
def test_success_is_exit_code_zero_or_none_without_complaint(exit_code: int | None, stderr: str, success: bool) -> None:
    assert CodeExecutionResult(exit_code=exit_code, stderr=stderr).is_success() is success


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        (CodeExecutionResult(exit_code=0), Outcome.OutcomeOk),
        (CodeExecutionResult(exit_code=3), Outcome.OutcomeFailed),
        (CodeExecutionResult(stderr="timed out", timed_out=True), Outcome.OutcomeDeadlineExceeded),
    ],
)
def test_a_part_says_how_it_ended(result: CodeExecutionResult, outcome: Outcome) -> None:
    assert CodeExecutionResultPart.of(result, id="7") == CodeExecutionResultPart(outcome, result.stderr, id="7")


def test_the_outcomes_are_those_of_the_gemini_api() -> None:
    from google.genai import types

    assert [outcome.value for outcome in Outcome] == [outcome.value for outcome in types.Outcome]


@pytest.mark.parametrize(
    "value",
    [
        CodeExecutionInput(
            "print(1)", "shell", input_files=(ExecFile(name="a/b.bin", content=BYTES),), execution_id="x"
        ),
        CodeExecutionResult(stdout="a", output_files=(ExecFile(name="p.png", content=BYTES),), timed_out=True),
        CodeExecutionResultPart(Outcome.OutcomeFailed, "no", files=(ExecFile(name="c", content=b""),)),
        ExecutableCodePart("1", id="call-1"),
    ],
)
def test_a_value_survives_as_json(value: object) -> None:
    adapter = TypeAdapter(type(value))
    assert adapter.validate_json(adapter.dump_json(value)) == value
    assert adapter.validate_python(adapter.dump_python(value)) == value


def test_a_file_is_standard_base64_in_json() -> None:
    adapter = TypeAdapter(ExecFile)
    told = json.loads(adapter.dump_json(ExecFile(name="a", content=BYTES)))
    assert told == {
        "name": "a", "content": base64.b64encode(BYTES).decode(), "mime_type": "application/octet-stream",
    }  # fmt: skip
    with pytest.raises(ValidationError):
        adapter.validate_json('{"name": "a", "content": "not base64!"}')


def test_a_nul_byte_in_the_code_is_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"^line 2 of the code holds a NUL byte\n"):
        CodeExecutionInput("a = 1\nb = '\0'")


@pytest.mark.parametrize("name", ["", ".", "/etc/passwd", "../up", "a/../../b", "a\0b"])
def test_an_input_file_that_would_leave_its_place_is_refused(name: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        CodeExecutionInput("1", input_files=(ExecFile(name=name, content=b""),))
    assert str(refused.value) == f"{name!r} cannot be staged: a file name is relative, without '..'"


def test_two_input_files_of_one_name_are_refused() -> None:
    file = ExecFile(name="a", content=b"")
    with pytest.raises(InvalidSetting, match=r"^two input files are named 'a': give each its own name$"):
        CodeExecutionInput("1", input_files=(file, file))


def test_an_executor_has_the_defaults_of_the_contract() -> None:
    class Echo(CodeExecutor):
        async def execute_code(self, ctx: InvocationContext, input: CodeExecutionInput) -> CodeExecutionResult:
            return CodeExecutionResult(stdout=input.code)

    echo = Echo()
    assert (echo.stateful, echo.error_retry_attempts, echo.timeout, echo.languages) == (False, 2, 30.0, ("python",))
    with pytest.raises(TypeError, match="abstract"):
        CodeExecutor()  # type: ignore[abstract]
