"""What goes into an executor, and what comes out of it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from hatchway.core.errors import InvalidSetting
from hatchway.core.results import ExecFile, check_input_files

STDERR_DIVIDER = "--- stderr ---"
"""The line between what a program printed and what it complained about."""


@dataclass(frozen=True, slots=True)
class CodeExecutionInput:
    """One execution.

    Raises:
        InvalidSetting: The code holds a NUL byte, or the input files have names that cannot be staged.
    """

    code: str
    """The source."""
    language: str = "python"
    """A lowercase language id, such as `"python"` or `"shell"`."""
    _: KW_ONLY
    input_files: tuple[ExecFile, ...] = ()
    """Files the code finds in its working directory."""
    execution_id: str | None = None
    """For stateful executors: executions of one id share their state."""

    def __post_init__(self) -> None:
        if "\0" in self.code:
            line = self.code[: self.code.index("\0")].count("\n") + 1
            raise InvalidSetting(
                f"line {line} of the code holds a NUL byte", hint="leave it out: no interpreter reads it"
            )
        check_input_files(self.input_files)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeExecutionResult:
    """What one execution gave."""

    stdout: str = ""
    """What was printed, cut in the middle past the executor's limit."""
    stderr: str = ""
    """What was written to stderr, cut likewise, and what the executor has to say."""
    output_files: tuple[ExecFile, ...] = ()
    """Files the code made or changed."""
    exit_code: int | None = None
    """Of the program, 128 + N when signal N killed it; None when there is none to tell."""
    timed_out: bool = False
    """Whether it was killed because its time was over."""

    def is_success(self) -> bool:
        """Exit code 0, or none and nothing on stderr."""
        return self.exit_code == 0 or (self.exit_code is None and not self.stderr)

    def combined_output(self) -> str:
        """Stdout, then stderr under a divider; only what there is of the two."""
        if not self.stdout or not self.stderr:
            return self.stdout or self.stderr
        end = "" if self.stdout.endswith("\n") else "\n"
        return f"{self.stdout}{end}{STDERR_DIVIDER}\n{self.stderr}"
