"""Environments: where the code of a provider runs, made once per set of capabilities and tools, and kept warm."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from hatchway.adapters.agent_framework.describing import description
from hatchway.adapters.agent_framework.nested import code_tools
from hatchway.adapters.agent_framework.registry import Snapshot
from hatchway.core.decisions import Settlement
from hatchway.core.errors import UnknownRun
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeSandbox
from hatchway.mode.mode import CodeMode
from hatchway.sandboxes.registry import make_sandbox

if TYPE_CHECKING:
    from hatchway.journal.store import Journal

MOST = 8
"""Environments kept per event loop; past that the one used longest ago, and used by nobody, is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What the environments of one provider have in common."""

    sandbox: str
    """A registered name."""
    settings: Mapping[str, Any]
    """What the sandbox itself is made with, such as an image."""
    limits: Limits | None
    journal: str | PathLike[str] | Journal | None
    type_check: bool
    per_call: bool


@dataclass(slots=True, kw_only=True, eq=False)
class Environment:
    """A mode, and its sandbox where that is not shared with others."""

    mode: CodeMode
    sandbox: CodeSandbox | None
    users: int = 0

    async def aclose(self) -> None:
        """Give everything back."""
        await self.mode.aclose()
        if self.sandbox is not None:
            await self.sandbox.aclose()


@dataclass(slots=True, eq=False)
class Environments:
    """The environments of one provider."""

    setup: Setup
    _kept: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Any, Environment]] = field(
        default_factory=WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Any, Environment]]
    )
    _owners: dict[str, Environment] = field(default_factory=dict[str, Environment])
    _told: tuple[Snapshot, str] | None = None

    def describe(self, snapshot: Snapshot) -> str:
        """What a model must know to write code for this snapshot; nothing is started for it.

        Raises:
            SandboxUnavailable: There is no such sandbox here.
            InvalidSetting: It does not take what is granted.
        """
        if self._told is None or self._told[0] is not snapshot:
            constraints = make_sandbox(self.setup.sandbox, **self._granted(snapshot)).constraints
            self._told = snapshot, description(snapshot, constraints, per_call=self.setup.per_call)
        return self._told[1]

    @asynccontextmanager
    async def use(self, snapshot: Snapshot) -> AsyncGenerator[Environment]:
        """The environment for a snapshot; not closed while somebody uses it."""
        environment = await self._environment(snapshot)
        environment.users += 1
        try:
            yield environment
        finally:
            environment.users -= 1

    def waits(self, run_id: str, environment: Environment) -> None:
        """A run paused; without a journal this environment has it, and nobody else."""
        if self.setup.journal is None and run_id not in self._owners:
            self._owners[run_id] = environment
            environment.users += 1  # it stays while somebody thinks

    async def resume(
        self, environment: Environment, run_id: str, decisions: Mapping[str, bool | Settlement]
    ) -> ExecutionResult:
        """As `CodeMode.resume`, where the run is.

        Raises:
            UnknownRun: Nobody has it.
        """
        if self.setup.journal is None:
            if run_id not in self._owners:
                raise UnknownRun(run_id, hint="give the provider a journal=, which other processes share")
            environment = self._owners[run_id]
        return await environment.mode.resume(run_id, decisions)

    async def aclose(self) -> None:
        """Close what this event loop has; actions paused without a journal end."""
        self._owners.clear()
        for environment in self._kept.pop(asyncio.get_running_loop(), {}).values():
            await environment.aclose()

    async def _environment(self, snapshot: Snapshot) -> Environment:
        here = self._kept.setdefault(asyncio.get_running_loop(), {})
        found = here.pop(snapshot.key, None) or await self._opened(snapshot)
        here[snapshot.key] = found  # the last one of the dict is the last one used
        while len(here) > MOST and (idle := next((key for key, each in here.items() if not each.users), None)):
            await here.pop(idle).aclose()
        return found

    def _granted(self, snapshot: Snapshot) -> dict[str, Any]:
        granted = dict(self.setup.settings)
        if snapshot.mounts:
            granted["file_mounts"] = snapshot.mounts
        if snapshot.domains:
            granted["allowed_domains"] = snapshot.domains
        return granted

    async def _opened(self, snapshot: Snapshot) -> Environment:
        setup, granted = self.setup, self._granted(snapshot)
        own = make_sandbox(setup.sandbox, **granted) if granted else None  # without grants it is shared by name
        mode = CodeMode(
            own or setup.sandbox,
            tools=code_tools(snapshot.tools, per_call=setup.per_call),
            limits=setup.limits,
            journal=setup.journal,
            type_check=setup.type_check,
            calls="written",
        )
        try:
            if own is not None:
                await own.__aenter__()
            await mode.__aenter__()
        except BaseException:
            if own is not None:
                await own.aclose()
            raise
        return Environment(mode=mode, sandbox=own)
