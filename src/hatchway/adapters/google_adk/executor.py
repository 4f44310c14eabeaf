"""HatchwayCodeExecutor: an ADK agent's code, run in any of our sandboxes."""

from __future__ import annotations

import weakref
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from google.adk.code_executors.base_code_executor import BaseCodeExecutor
from google.adk.code_executors.code_execution_utils import CodeExecutionInput, CodeExecutionResult, File
from pydantic import ConfigDict, PrivateAttr, SkipValidation

from hatchway.adapters.google_adk.loop_thread import LoopThread
from hatchway.core.errors import CodeTimeoutError, HatchwayError
from hatchway.core.limits import Limits
from hatchway.core.results import ExecFile, ExecutionResult
from hatchway.core.sandbox import CodeSandbox
from hatchway.core.values import as_python
from hatchway.gate.rules import Rule
from hatchway.mode.workbench import BenchSettings, End, Workbench

if TYPE_CHECKING:
    from google.adk.agents.invocation_context import InvocationContext

DIVIDER = "--- stderr ---"


class HatchwayCodeExecutor(BaseCodeExecutor):
    """Runs the code of an ADK agent in a sandbox: `LlmAgent(..., code_executor=HatchwayCodeExecutor(sandbox="jail"))`.

    Input files lie in the working directory of the code; what it makes there or leaves in `/output`, where the sandbox
    has one, and the pictures it displays, become artifacts. With `optimize_data_file=True` ADK first runs code of its
    own on each file, which needs pandas: `JailSandbox(packages=["pandas"])`. Code that fails, runs out of time or
    cannot be run is a result with `stderr`, which is what ADK tells the model and counts. Use it as a context manager,
    or call `close`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    sandbox: SkipValidation[CodeSandbox | str] = "auto"
    """An instance, which stays the caller's to close once the executor is closed, or a registered name."""
    tools: SkipValidation[tuple[Any, ...]] = ()
    """What the code may call."""
    approve: Callable[..., Any] | None = None
    """Decides about calls that must be asked for; without it they are denied."""
    rules: SkipValidation[tuple[Rule, ...]] = ()
    """Stored permissions."""
    limits: SkipValidation[Limits | None] = None
    """Of each execution; the time is `timeout_seconds`."""
    timeout_seconds: int | None = 30
    """Seconds one execution may take; None takes it from `limits`."""
    state: Literal["none", "invocation", "session"] = "invocation"
    """How long names persist: for one execution, one invocation of the agent, or one session of ADK's."""
    max_sessions: int = 16
    """Interpreters kept at one time; past that the one used longest ago is closed."""

    _loop: LoopThread = PrivateAttr(default_factory=LoopThread)
    _bench: Workbench | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any, /) -> None:
        """Check the settings; nothing is started yet."""
        self.stateful = self.state == "session"  # ADK gives an execution id then, and only then
        limits = self.limits or Limits()
        if self.timeout_seconds is not None:
            limits = replace(limits, wall_seconds=self.timeout_seconds)
        settings = BenchSettings(
            sandbox=self.sandbox,
            tools=self.tools,
            approve=self.approve,
            rules=self.rules,
            limits=limits,
            max_sessions=self.max_sessions,
        )
        self._bench = Workbench(settings)
        weakref.finalize(self, self._loop.stop)

    def execute_code(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """As ADK's contract says. It waits: ADK calls it in a thread."""
        name = code_execution_input.execution_id
        if self.state == "invocation":
            name = _session_of(invocation_context.invocation_id)
        try:
            files = [_exec_file(file) for file in code_execution_input.input_files]
            run = self._workbench.run(code_execution_input.code, files=files, session=name)
            return _result(self._loop.run(run))
        except HatchwayError as e:
            return CodeExecutionResult(stderr=f"sandbox failed: {e}")

    def end_invocation(self, invocation_id: str) -> None:
        """Close the interpreter of an invocation that is over; the plugin calls this."""
        if self._loop.is_running:
            self._loop.run(self._workbench.close_session(_session_of(invocation_id)))

    def instruction(self) -> str:
        """What a model must know: how code is written in ADK, which Python it may use and what it may call."""
        opening, closing = self.code_block_delimiters[0]
        fence = f"To run Python, write it like this:\n\n{opening}print(1 + 1){closing}"
        return f"{fence}\n\n{self._loop.run(self._workbench.prompt())}"

    def close(self) -> None:
        """End everything of it that still runs. Legal twice; it can be used again afterwards."""
        if self._loop.is_running:
            self._loop.run(self._workbench.aclose())
            self._loop.stop()

    def __enter__(self) -> HatchwayCodeExecutor:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def _workbench(self) -> Workbench:
        assert self._bench is not None, "made with the executor"
        return self._bench


def _session_of(invocation_id: str) -> str:
    return f"invocation {invocation_id}"


def _exec_file(file: File) -> ExecFile:
    """ADK's file; text is base64, as ADK says, unless it cannot be."""
    content = file.content
    if isinstance(content, str):
        try:
            content = b64decode(content, validate=True)
        except (BadBase64, ValueError):
            content = content.encode("utf-8", "replace")
    return ExecFile(name=file.name, content=content, mime_type=file.mime_type)


def _result(end: End) -> CodeExecutionResult:
    if isinstance(end, ExecutionResult):
        shown = "" if end.output is None else f"{as_python(end.output)}\n"
        files = [File(f.name, f.content, f.mime_type) for f in (*end.files, *end.images)]
        # stderr means failure to ADK, and warnings are none
        return CodeExecutionResult(_divided(end.stdout + shown, end.stderr), "", files, 0)
    files = [File(f.name, f.content, f.mime_type) for f in end.files]
    is_timeout = isinstance(end, CodeTimeoutError)
    why = f"timed out: {end}" if is_timeout else str(end)
    # of a failure ADK tells the model stderr alone: what was printed must be in it
    return CodeExecutionResult(
        end.stdout, _divided(end.stdout, _joined(end.stderr, why)), files, None if is_timeout else 1
    )


def _divided(stdout: str, stderr: str) -> str:
    return f"{_joined(stdout, DIVIDER)}\n{stderr}" if stdout and stderr else stdout or stderr


def _joined(first: str, second: str) -> str:
    return first + ("" if not first or first.endswith("\n") else "\n") + second
