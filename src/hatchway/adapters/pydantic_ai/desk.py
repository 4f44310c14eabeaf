"""The desk: the modes of one toolset, one per set of tools and event loop, kept warm from run to run."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from pydantic_ai.tools import ToolDefinition

from hatchway.adapters.pause_tokens import is_unended
from hatchway.adapters.pydantic_ai.offer import tools_of
from hatchway.adapters.pydantic_ai.settings import CodeModeSettings
from hatchway.core.decisions import Settlement
from hatchway.core.errors import CodeExecutionError, CodeLimitError, CodeTimeoutError, UnknownRun
from hatchway.core.results import ExecutionResult
from hatchway.core.signing import load_key
from hatchway.mode.kept_sessions import KeptSessions
from hatchway.mode.mode import CodeMode
from hatchway.mode.prompt import build_code_mode_prompt
from hatchway.tools.stubs import render_stubs

MOST_MODES = 16
"""Sets of tools remembered per event loop."""


@dataclass(slots=True, kw_only=True)
class OpenMode:
    """A mode for one set of tools."""

    definitions: Mapping[str, ToolDefinition]
    mode: CodeMode
    sessions: KeptSessions
    prompt: str

    async def run(self, code: str, session: str | None) -> ExecutionResult:
        """Run an action, in the session of this name if there is one; raises as `CodeMode.run`."""
        if session is None:
            return await self.mode.run(code)
        async with self.sessions.use(session) as kept:
            try:
                return await kept.session.run(code)
            except (CodeTimeoutError, CodeLimitError, asyncio.CancelledError):
                kept.is_lost = True
                raise


@dataclass(slots=True, eq=False)
class Desk:
    """Finds the mode for a set of tools, or opens one."""

    settings: CodeModeSettings
    _open: WeakKeyDictionary[asyncio.AbstractEventLoop, list[OpenMode]] = field(
        default_factory=WeakKeyDictionary[asyncio.AbstractEventLoop, list[OpenMode]]
    )
    _owners: dict[str, OpenMode] = field(default_factory=dict[str, OpenMode])
    _paused: dict[str, str] = field(default_factory=dict[str, str])
    _own_key: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    @property
    def key(self) -> bytes:
        """What tokens are signed with: the user's key where other processes must read them."""
        return self._own_key if self.settings.journal is None else load_key()

    async def mode_for(self, definitions: Mapping[str, ToolDefinition]) -> OpenMode:
        """The mode that offers these tools.

        Raises:
            InvalidTool, SandboxUnavailable, JournalError: It cannot be opened.
        """
        here = self._open.setdefault(asyncio.get_running_loop(), [])
        for number, opened in enumerate(here):
            if opened.definitions == definitions:
                here.append(here.pop(number))
                return opened
        opened = await self._opened(definitions)
        here.append(opened)
        while len(here) > MOST_MODES:
            await self._close(here.pop(0))
        return opened

    def waits(self, run_id: str, opened: OpenMode, code: str) -> None:
        """A run of this code paused; without a journal this mode has it, and nobody else."""
        if self.settings.journal is None:
            self._owners.setdefault(run_id, opened)
            self._paused.setdefault(run_id, code)

    async def resume(
        self, opened: OpenMode, run_id: str, decisions: Mapping[str, bool | Settlement]
    ) -> ExecutionResult:
        """As `CodeMode.resume`, on the mode that has the run.

        Raises:
            UnknownRun: Nobody has it.
        """
        if self.settings.journal is not None:
            return await opened.mode.resume(run_id, decisions)
        if run_id not in self._owners:
            raise UnknownRun(run_id, hint="give CodeModeToolset a journal=, which other processes share")
        try:
            result = await self._owners[run_id].mode.resume(run_id, decisions)
        except CodeExecutionError:
            self._paused.pop(run_id, None)
            raise
        self._paused.pop(run_id, None)
        return result

    async def is_waiting(self, code: str, opened: OpenMode) -> bool:
        """Whether a run of exactly this code is paused or was cut short."""
        if self.settings.journal is None:
            return code in self._paused.values()
        return await asyncio.to_thread(is_unended, opened.mode.journal, code)

    async def aclose(self) -> None:
        """Close what this event loop has open; paused runs without a journal end."""
        for opened in self._open.pop(asyncio.get_running_loop(), []):
            await self._close(opened)

    async def _close(self, opened: OpenMode) -> None:
        for run_id in [run_id for run_id, owner in self._owners.items() if owner is opened]:
            del self._owners[run_id]
            self._paused.pop(run_id, None)
        await opened.sessions.aclose()
        await opened.mode.aclose()

    async def _opened(self, definitions: Mapping[str, ToolDefinition]) -> OpenMode:
        settings = self.settings
        told, sought = await asyncio.to_thread(tools_of, definitions)  # a millisecond per tool
        mode = CodeMode(
            settings.sandbox,
            tools=[*told, *sought],
            rules=settings.rules,
            limits=settings.limits,
            journal=settings.journal,
            type_check=settings.type_check and settings.state == "none",  # a checker knows one action, not the last
            calls="written",
        )
        await mode.__aenter__()
        ids = None if settings.journal is None else _session_id
        return OpenMode(
            definitions=dict(definitions),
            mode=mode,
            sessions=KeptSessions(mode, settings.max_sessions, session_id=ids),
            prompt=build_code_mode_prompt(
                signatures=[render_stubs(told, "async")],
                constraints=mode.sandbox.constraints,
                state="fresh" if settings.state == "none" else "kept",
            ),
        )


def _session_id(name: str) -> str:
    return hashlib.sha256(f"pydantic-ai {name}".encode()).hexdigest()[:32]
