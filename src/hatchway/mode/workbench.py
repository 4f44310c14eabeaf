"""Workbench: actions for those who give code and want its end: named sessions, files in and out, nobody asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from hatchway.core.decisions import ApproveCallback, Deny
from hatchway.core.errors import CodeExecutionError, CodeLimitError, CodeTimeoutError, InvalidSetting, SandboxCrashed
from hatchway.core.events import AgentEvent, ApprovalRequest, CodeExecutionOutput, CodeExecutionOutputChunk, RunFailed
from hatchway.core.limits import Limits
from hatchway.core.results import ExecFile, ExecutionResult, check_input_files
from hatchway.core.sandbox import CodeSandbox, OnOutput
from hatchway.gate.rules import Rule
from hatchway.mode.file_exchange import FileExchange
from hatchway.mode.kept_sessions import KeptSessions
from hatchway.mode.mode import CodeMode
from hatchway.mode.session import ModeSession
from hatchway.tools.functions import Tool

LOST = "the state of this session is lost with it"
End = ExecutionResult | CodeExecutionError
"""How an action ended; its `files` are those of `/output` and of the working directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSettings:
    """What a workbench offers; see `CodeMode`."""

    sandbox: CodeSandbox | str = "auto"
    """An instance, which stays the caller's to close, or a registered name."""
    tools: Sequence[Tool | Callable[..., Any]] = ()
    """What the code may call."""
    approve: ApproveCallback | None = None
    """Decides about calls that must be asked for; without it they are denied."""
    rules: Sequence[Rule] = ()
    """Stored permissions."""
    limits: Limits = field(default_factory=Limits)
    """Of each action."""
    max_sessions: int = 16
    """Sessions kept open; past that the one used longest ago is closed."""
    has_files: bool = True
    """Whether files go in and out of the working directory."""
    on_event: Callable[[AgentEvent], None] | None = None
    """Sees every event."""
    host_mounts: Sequence[Any] = ()
    """Files of this machine; whoever knows which folders are allowed brings them."""

    def __post_init__(self) -> None:
        if self.max_sessions < 1:
            raise InvalidSetting(f"max_sessions is at least 1, not {self.max_sessions}")

    def mode(self) -> CodeMode:
        """A mode of this kind."""
        settings: dict[str, Any] = {"approve": self.approve, "rules": self.rules, "limits": self.limits}
        return CodeMode(self.sandbox, tools=self.tools, on_event=self.on_event, **settings)


@dataclass(slots=True)
class _Open:
    mode: CodeMode
    sessions: KeptSessions


class Workbench:
    """Runs actions, fresh or in sessions known by name. Each event loop has its own sandbox and sessions.

    Raises:
        InvalidTool: A tool cannot be offered as given.
    """

    def __init__(self, settings: BenchSettings) -> None:
        self._settings = settings
        self._open: WeakKeyDictionary[asyncio.AbstractEventLoop, _Open] = WeakKeyDictionary()
        settings.mode()  # a mistake in the tools is told now

    async def open(self) -> CodeSandbox:
        """The sandbox in use, started if need be.

        Raises:
            InvalidSetting: An unknown sandbox.
            SandboxUnavailable: It cannot be offered here.
        """
        return (await self._opened().mode.__aenter__()).sandbox

    async def run(
        self,
        code: str,
        *,
        files: Sequence[ExecFile] = (),
        session: str | None = None,
        on_output: OnOutput | None = None,
    ) -> End:
        """Run an action to its end.

        Args:
            code: The action.
            files: Written into its working directory first.
            session: The name of the state it shares; None for a fresh one, also where a sandbox keeps none.
            on_output: Sees stdout and stderr as they arrive.

        Raises:
            InvalidSetting: The files cannot be staged, or not here.
            SandboxUnavailable, SandboxCrashed, TransportError: The host failed.
        """
        check_input_files(files)
        constraints = (await self.open()).constraints
        opened = self._opened()
        has_files = self._settings.has_files and constraints.filesystem and constraints.stateful
        if files and not has_files:
            raise InvalidSetting(
                f"the sandbox {opened.mode.sandbox.name!r} has no place for input files", hint="use sandbox='jail'"
            )
        if session is not None and constraints.stateful:
            return await self._in_session(opened, session, code, files if has_files else None, on_output)
        if not has_files:
            return await _end(opened.mode.stream(code), on_output)
        async with opened.mode.session() as fresh:
            exchange = FileExchange(fresh, self._settings.limits)
            return (await _exchanged(fresh, exchange, code, files, on_output))[0]

    async def prompt(self) -> str:
        """What a model must know to write code for it; see `CodeMode.prompt`."""
        await self.open()
        return self._opened().mode.prompt()

    async def close_session(self, name: str) -> None:
        """Close the session of this name, if there is one and nobody uses it."""
        await self._opened().sessions.close(name)

    async def aclose(self) -> None:
        """Close the sessions of this event loop and give the sandbox back. It can be used again afterwards."""
        opened = self._open.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened.sessions.aclose()
            await opened.mode.aclose()

    def _opened(self) -> _Open:
        loop = asyncio.get_running_loop()
        if loop not in self._open:
            mode = self._settings.mode()
            self._open[loop] = _Open(mode, KeptSessions(mode, self._settings.max_sessions))
        return self._open[loop]

    async def _in_session(
        self, opened: _Open, name: str, code: str, files: Sequence[ExecFile] | None, on_output: OnOutput | None
    ) -> End:
        async with opened.sessions.use(name) as kept:
            if kept.files is None and files is not None:
                kept.files = FileExchange(kept.session, self._settings.limits)
            try:
                end, kept.is_lost = await _exchanged(kept.session, kept.files, code, files or (), on_output)
            except (SandboxCrashed, asyncio.CancelledError):
                kept.is_lost = True
                raise
            return _noted(end, (), f"{LOST}\n") if kept.is_lost else end


async def _exchanged(
    session: ModeSession,
    exchange: FileExchange | None,
    code: str,
    files: Sequence[ExecFile],
    on_output: OnOutput | None,
) -> tuple[End, bool]:
    """How the action ended, with its files, and whether the interpreter was killed."""
    if exchange is not None:
        await exchange.stage(files)
    end = await _end(session.stream(code), on_output)
    if isinstance(end, CodeTimeoutError | CodeLimitError):
        return end, True
    if exchange is None:
        return end, False
    try:
        made, note = await exchange.collect()
    except SandboxCrashed:
        return end, True  # the code killed its interpreter: its own end has said so
    given = {f"output/{file.name}" for file in end.files}  # where that lies in the working directory, it came already
    return _noted(end, tuple(file for file in made if file.name not in given), note), False


async def _end(events: AsyncGenerator[AgentEvent, None], on_output: OnOutput | None) -> End:
    async with aclosing(events):
        async for event in events:
            match event:
                case CodeExecutionOutputChunk(text=text, stream=stream):
                    if on_output is not None:
                        on_output(stream, text)
                case ApprovalRequest():
                    event.approve(Deny("nobody is here to approve it"))
                case CodeExecutionOutput(result=ExecutionResult() as result):
                    return result
                case RunFailed(error=CodeExecutionError() as error):
                    return error
                case _:
                    pass
    raise SandboxCrashed("the run ended without a result", hint="run it again")


def _noted(end: End, files: Iterable[ExecFile], note: str) -> End:
    """The end with more files, and a line more: after what a result has on stderr, or after an error's message."""
    if isinstance(end, ExecutionResult):
        gap = "" if not note or not end.stderr or end.stderr.endswith("\n") else "\n"
        return replace(end, files=(*end.files, *files), stderr=f"{end.stderr}{gap}{note}")
    end.files = (*end.files, *files)
    end.message = f"{end.message}\n{note.rstrip()}" if note else end.message
    return end
