"""SandboxCodeExecutor: any sandbox as an executor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from hatchway.core.decisions import ApproveCallback
from hatchway.core.errors import CodeTimeoutError, InvalidSetting
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeSandbox
from hatchway.core.values import as_python
from hatchway.executors.execution import CodeExecutionInput, CodeExecutionResult
from hatchway.executors.executor import CodeExecutor, InvocationContext
from hatchway.executors.languages import language_id, unknown_language
from hatchway.gate.rules import Rule
from hatchway.mode.sandbox_code import code_prompt
from hatchway.mode.workbench import BenchSettings, End, Workbench
from hatchway.tools.functions import Tool


class SandboxCodeExecutor(CodeExecutor):
    """Runs Python in a sandbox: sealed, with tools through the gate if it is given some.

    Stateful when the sandbox has sessions: executions of one `execution_id` share names, imports and files; without
    an id each one is fresh. Input files lie in the working directory; what the code makes or changes there or leaves
    in `/output`, and the pictures it displays, come back. Close it with `aclose`, or use it in `async with`.

    Args:
        sandbox: An instance, which stays the caller's to close, or a registered name.
        tools: What the code may call.
        approve: Decides about calls that must be asked for; without it they are denied.
        rules: Stored permissions.
        timeout: Seconds one execution may take.
        limits: All other limits.
        error_retry_attempts: Attempts in all when the sandbox fails.
        max_sessions: Sessions kept open; past that the one used longest ago is closed.
        files: Whether files go in and out of the working directory; off, an execution costs less.

    Raises:
        InvalidSetting: A setting that is not valid.
        InvalidTool: A tool cannot be offered as given.
    """

    def __init__(
        self,
        sandbox: CodeSandbox | str = "auto",
        *,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        approve: ApproveCallback | None = None,
        rules: Iterable[Rule] = (),
        timeout: float = 30.0,
        limits: Limits | None = None,
        error_retry_attempts: int = 2,
        max_sessions: int = 16,
        files: bool = True,
    ) -> None:
        if error_retry_attempts < 1:
            raise InvalidSetting(f"error_retry_attempts is at least 1, not {error_retry_attempts}")
        self.timeout = timeout
        self.error_retry_attempts = error_retry_attempts
        self.stateful = isinstance(sandbox, str) or sandbox.constraints.stateful
        self._settings = BenchSettings(
            sandbox=sandbox,
            tools=tuple(tools),
            approve=approve,
            rules=tuple(rules),
            limits=replace(limits or Limits(), wall_seconds=timeout),
            max_sessions=max_sessions,
            has_files=files,
        )
        self._bench = Workbench(self._settings)

    def prompt(self) -> str:
        """Which Python it is, and what it may call; nothing where the code may call nothing."""
        return code_prompt(self._settings) if self._settings.tools else ""

    async def execute_code(self, ctx: InvocationContext, input: CodeExecutionInput) -> CodeExecutionResult:
        """As the contract says; code that raises has exit code 1 and its traceback on stderr."""
        if language_id(input.language) != "python":
            raise unknown_language(input.language, self.languages)
        self.stateful = (await self._bench.open()).constraints.stateful
        end = await self._bench.run(
            input.code, files=input.input_files, session=input.execution_id, on_output=ctx.on_output
        )
        return _told(end)

    async def aclose(self) -> None:
        """Close the sessions and give the sandbox back. The executor can be used again afterwards."""
        await self._bench.aclose()


def _told(end: End) -> CodeExecutionResult:
    if isinstance(end, ExecutionResult):
        shown = "" if end.output is None else f"{as_python(end.output)}\n"
        files = (*end.files, *end.images)
        return CodeExecutionResult(stdout=end.stdout + shown, stderr=end.stderr, output_files=files, exit_code=0)
    is_timeout = isinstance(end, CodeTimeoutError)
    gap = "" if not end.stderr or end.stderr.endswith("\n") else "\n"
    why = f"timed out: {end}" if is_timeout else str(end)
    return CodeExecutionResult(
        stdout=end.stdout,
        stderr=f"{end.stderr}{gap}{why}\n",
        output_files=end.files,
        exit_code=None if is_timeout else 1,
        timed_out=is_timeout,
    )
