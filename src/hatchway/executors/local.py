"""LocalCodeExecutor: an interpreter as a child process of this machine. It is UNSEALED."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from hatchway.core.errors import InvalidSetting
from hatchway.core.limits import Limits
from hatchway.core.results import ExecFile
from hatchway.executors.execution import CodeExecutionInput, CodeExecutionResult
from hatchway.executors.executor import CodeExecutor, InvocationContext
from hatchway.executors.languages import LANGUAGES, Interpreter, language_id, unknown_language
from hatchway.executors.program_run import Program, ProgramEnd, run_program
from hatchway.executors.workspace import Workspace
from hatchway.sandboxes.guest_process import Death
from hatchway.sandboxes.starting import started


@dataclass(frozen=True, kw_only=True)
class LocalCodeExecutor(CodeExecutor):
    """Runs each program in a child process with the code on its stdin. UNSEALED: for code you trust.

    The program's working directory is a private folder: input files lie in it, and what it makes or changes there
    comes back. Its environment holds what is granted and nothing else. When its time is over it dies at once, with
    every process it started, also those that changed their session or ignore signals.
    """

    interpreter: str | None = None
    """Runs every program, whatever its language; None chooses by language."""
    args: tuple[str, ...] = ("-",)
    """Arguments of `interpreter`; keep what makes it read stdin."""
    timeout: float | None = 30.0
    """Seconds one program may take; None for no limit."""
    error_retry_attempts: int = 2
    """Attempts in all when a program cannot be started."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """The program's whole environment; of the host's nothing is passed on."""
    limits: Limits = field(default_factory=Limits)
    """Of memory, processes, output and files; the time is `timeout`."""
    interpreters: Mapping[str, Interpreter] = field(default_factory=lambda: MappingProxyType(dict(LANGUAGES)))
    """The interpreter of each language."""
    workspace_root: str | Path | None = None
    """Where the private folders are made; default is the system's temporary folder."""
    languages: tuple[str, ...] = field(init=False, repr=False, default=())
    """The language ids it takes."""

    def __post_init__(self) -> None:
        if self.error_retry_attempts < 1:
            raise InvalidSetting(f"error_retry_attempts is at least 1, not {self.error_retry_attempts}")
        if self.timeout is not None and not self.timeout > 0:
            raise InvalidSetting(f"timeout is a positive number of seconds or None, not {self.timeout!r}")
        names = tuple(self.interpreters) if self.interpreter is None else _named(self.interpreter, self.interpreters)
        object.__setattr__(self, "languages", names)

    def with_interpreter(self, interpreter: str) -> LocalCodeExecutor:
        """A copy that runs every program with this one, whatever its language."""
        return replace(self, interpreter=interpreter)

    def with_args(self, args: Sequence[str]) -> LocalCodeExecutor:
        """A copy with other interpreter arguments; keep `-`, or what makes it read stdin."""
        return replace(self, interpreter=self.interpreter or LANGUAGES["python"].command, args=tuple(args))

    def with_timeout(self, seconds: float | None) -> LocalCodeExecutor:
        """A copy whose programs may take so long."""
        return replace(self, timeout=seconds)

    def with_language(self, language: str, interpreter: str, args: Sequence[str] = ("-",)) -> LocalCodeExecutor:
        """A copy that knows one language more, or runs a known one with something else."""
        row = {language_id(language): Interpreter(interpreter, tuple(args))}
        return replace(self, interpreters=MappingProxyType({**self.interpreters, **row}))

    async def execute_code(self, ctx: InvocationContext, input: CodeExecutionInput) -> CodeExecutionResult:
        """As the contract says.

        Raises:
            InvalidSetting: An unknown language, or input files that cannot be staged.
            SandboxUnavailable: There is no such interpreter, or it cannot be started.
            SandboxCrashed: What starts and kills the program died.
        """
        argv = self._interpreter_of(input.language).argv()
        with Workspace(self.workspace_root) as workspace, _readable(input.code) as source:
            if input.input_files:
                await started(lambda: workspace.stage(input.input_files), _nothing_to_undo)
            program = Program(argv=argv, cwd=workspace.path, env=self.env, stdin=source.fileno())
            end = await run_program(program, limits=self.limits, timeout=self.timeout, on_output=ctx.on_output)
            files, notes = (), []
            if not workspace.is_empty:
                files, notes = await started(lambda: workspace.collect(self.limits), _nothing_to_undo)
            return self._result(end, files, notes)

    def _interpreter_of(self, language: str) -> Interpreter:
        if self.interpreter is not None:
            return Interpreter(self.interpreter, self.args)
        try:
            return self.interpreters[language_id(language)]
        except KeyError:
            raise unknown_language(language, self.interpreters) from None

    def _result(self, end: ProgramEnd, files: tuple[ExecFile, ...], notes: Sequence[str]) -> CodeExecutionResult:
        if end.death.limit:
            notes = [f"killed: it took more than Limits.{end.death.limit}", *notes]
        if end.is_timeout:
            notes = [f"timed out after {self.timeout:g} s: killed, with everything it had started", *notes]
        return CodeExecutionResult(
            stdout=end.stdout,
            stderr=_with_notes(end.stderr, notes),
            output_files=files,
            exit_code=None if end.is_timeout else _exit_code(end.death),
            timed_out=end.is_timeout,
        )


def _nothing_to_undo(_: object) -> None:
    """The thread is waited for all the same: it must not write into a folder that is gone."""


def _named(interpreter: str, table: Mapping[str, Interpreter]) -> tuple[str, ...]:
    """The languages a fixed interpreter stands for; its own name when the table does not know it."""
    name = os.path.basename(interpreter)
    return tuple(language for language, row in table.items() if os.path.basename(row.command) == name) or (name,)


def _readable(code: str) -> BinaryIO:
    """The code as an open file: a program that never reads it blocks nobody."""
    if hasattr(os, "memfd_create"):
        source: BinaryIO = os.fdopen(os.memfd_create("code"), "w+b")
    else:
        source = tempfile.TemporaryFile()  # noqa: SIM115
    source.write(code.encode("utf-8", "replace"))
    source.seek(0)
    return source


def _exit_code(death: Death) -> int | None:
    if death.signal:
        known = signal.Signals.__members__.get(death.signal)
        return 128 + (known.value if known is not None else int(death.signal.removeprefix("number ")))
    return death.exit_code


def _with_notes(stderr: str, notes: Sequence[str]) -> str:
    """What the program said, then what the executor has to say, a line each."""
    if not notes:
        return stderr
    end = "" if not stderr or stderr.endswith("\n") else "\n"
    return stderr + end + "".join(f"{note}\n" for note in notes)
