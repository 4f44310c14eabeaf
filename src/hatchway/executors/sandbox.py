"""SandboxCodeExecutor: any sandbox as an executor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from hatchway.core.decisions import ApproveCallback, Deny
from hatchway.core.errors import CodeExecutionError, CodeLimitError, CodeTimeoutError, InvalidSetting, SandboxCrashed
from hatchway.core.events import AgentEvent, ApprovalRequest, CodeExecutionOutput, CodeExecutionOutputChunk, RunFailed
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeSandbox
from hatchway.executors.execution import CodeExecutionInput, CodeExecutionResult
from hatchway.executors.executor import CodeExecutor, InvocationContext
from hatchway.executors.file_exchange import FileExchange
from hatchway.executors.languages import language_id, unknown_language
from hatchway.executors.sessions import Sessions
from hatchway.gate.rules import Rule
from hatchway.mode.mode import CodeMode
from hatchway.mode.session import ModeSession
from hatchway.tools.functions import Tool

LOST = "the state of this session is lost with it"


@dataclass(slots=True)
class _Open:
    mode: CodeMode
    sessions: Sessions


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
        InvalidSetting: An unknown sandbox, or a setting that is not valid.
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
        if error_retry_attempts < 1 or max_sessions < 1:
            raise InvalidSetting("error_retry_attempts and max_sessions are at least 1")
        self.timeout = timeout
        self.error_retry_attempts = error_retry_attempts
        self.stateful = isinstance(sandbox, str) or sandbox.constraints.stateful
        self._sandbox, self._max_sessions, self._has_files = sandbox, max_sessions, files
        self._tools, self._approve, self._rules = tuple(tools), approve, tuple(rules)
        self._limits = replace(limits or Limits(), wall_seconds=timeout)
        self._open: WeakKeyDictionary[asyncio.AbstractEventLoop, _Open] = WeakKeyDictionary()
        self._new_mode()  # a mistake in the tools is told now

    async def execute_code(self, ctx: InvocationContext, input: CodeExecutionInput) -> CodeExecutionResult:
        """As the contract says; code that raises has exit code 1 and its traceback on stderr."""
        if language_id(input.language) != "python":
            raise unknown_language(input.language, self.languages)
        opened = self._opened()
        sandbox = (await opened.mode.__aenter__()).sandbox
        self.stateful = sandbox.constraints.stateful
        has_files = self._has_files and sandbox.constraints.filesystem
        if input.input_files and not has_files:
            raise InvalidSetting(
                f"the sandbox {sandbox.name!r} has no file system for input files", hint="use sandbox='jail'"
            )
        if input.execution_id is not None and self.stateful:
            return await self._in_session(opened, ctx, input, input.execution_id)
        if not has_files or not self.stateful:
            return _told(await _end(opened.mode.stream(input.code), ctx))
        async with opened.mode.session() as session:
            return (await _exchanged(session, FileExchange(session, self._limits), ctx, input))[0]

    async def aclose(self) -> None:
        """Close the sessions and give the sandbox back. The executor can be used again afterwards."""
        opened = self._open.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened.sessions.aclose()
            await opened.mode.aclose()

    async def _in_session(
        self, opened: _Open, ctx: InvocationContext, input: CodeExecutionInput, name: str
    ) -> CodeExecutionResult:
        async with opened.sessions.use(name) as kept:
            if kept.files is None and self._has_files and opened.mode.sandbox.constraints.filesystem:
                kept.files = FileExchange(kept.session, self._limits)
            try:
                result, kept.is_lost = await _exchanged(kept.session, kept.files, ctx, input)
            except (SandboxCrashed, asyncio.CancelledError):
                kept.is_lost = True
                raise
            return replace(result, stderr=f"{result.stderr}{LOST}\n") if kept.is_lost else result

    def _opened(self) -> _Open:
        """What this event loop has of it; pools belong to the loop they were made in."""
        loop = asyncio.get_running_loop()
        if loop not in self._open:
            mode = self._new_mode()
            self._open[loop] = _Open(mode, Sessions(mode, self._max_sessions))
        return self._open[loop]

    def _new_mode(self) -> CodeMode:
        return CodeMode(self._sandbox, tools=self._tools, approve=self._approve, rules=self._rules, limits=self._limits)


async def _exchanged(
    session: ModeSession, files: FileExchange | None, ctx: InvocationContext, input: CodeExecutionInput
) -> tuple[CodeExecutionResult, bool]:
    """The result with its files, and whether the interpreter was killed."""
    if files is not None:
        await files.stage(input.input_files)
    end = await _end(session.stream(input.code), ctx)
    result = _told(end)
    if isinstance(end, CodeTimeoutError | CodeLimitError):
        return result, True
    if files is None:
        return result, False
    try:
        made, note = await files.collect()
    except SandboxCrashed:
        return result, True  # the code killed its interpreter: the run itself has said so
    return replace(result, output_files=(*result.output_files, *made), stderr=result.stderr + note), False


async def _end(
    events: AsyncGenerator[AgentEvent, None], ctx: InvocationContext
) -> ExecutionResult | CodeExecutionError:
    """Drive a run to its end; nobody is asked."""
    async with aclosing(events):
        async for event in events:
            match event:
                case CodeExecutionOutputChunk(text=text, stream=stream):
                    if ctx.on_output is not None:
                        ctx.on_output(stream, text)
                case ApprovalRequest():
                    event.approve(Deny("nobody is here to approve it"))
                case CodeExecutionOutput(result=ExecutionResult() as result):
                    return result
                case RunFailed(error=CodeExecutionError() as error):
                    return error
                case _:
                    pass
    raise SandboxCrashed("the run ended without a result", hint="run it again")


def _told(end: ExecutionResult | CodeExecutionError) -> CodeExecutionResult:
    if isinstance(end, ExecutionResult):
        shown = "" if end.output is None else f"{end.output!r}\n"
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
