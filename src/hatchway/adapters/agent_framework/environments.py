"""Environments: where the code of a provider runs, made once per set of capabilities and tools, and kept warm."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from hatchway.adapters.agent_framework.describing import description
from hatchway.adapters.agent_framework.nested import code_tools
from hatchway.adapters.agent_framework.registry import Snapshot
from hatchway.adapters.pause_tokens import is_unended
from hatchway.core.decisions import Settlement
from hatchway.core.errors import CodeExecutionError, UnknownRun
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import CodeSandbox
from hatchway.core.signing import load_key
from hatchway.mode.mode import CodeMode
from hatchway.sandboxes.registry import make_sandbox
from hatchway.tools.functions import Tool

if TYPE_CHECKING:
    from hatchway.journal.store import Journal

MOST = 8
"""Environments kept per event loop; past that the one used longest ago, and used by nobody, is closed."""
MOST_ENDED = 256
"""Runs that were paused and have ended, of which the end can be told again."""


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


def made_setup(sandbox: str, settings: Mapping[str, Any], given: Mapping[str, Any], *, type_check: bool) -> Setup:
    """The setup for a sandbox, from the options of a provider; what was not given is left to the sandbox."""
    return Setup(
        sandbox=sandbox,
        settings={name: value for name, value in settings.items() if value is not None},
        limits=given["limits"],
        journal=given["journal"],
        type_check=type_check,
        per_call=given["per_call_approval"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a snapshot comes to: made once, for it takes a millisecond per tool."""

    snapshot: Snapshot
    tools: Sequence[Tool]
    """As the code has them."""
    description: str
    """What a model must know to write code for it."""


@dataclass(slots=True, kw_only=True, eq=False)
class Environment:
    """A mode, and its sandbox where that is not shared with others."""

    mode: CodeMode
    sandbox: CodeSandbox | None
    typed: Mapping[str, Tool]
    """The tools as the code has them, by the framework's names."""
    users: int = 0

    async def aclose(self) -> None:
        """Give everything back."""
        await self.mode.aclose()
        if self.sandbox is not None:
            await self.sandbox.aclose()


@dataclass(slots=True)
class _Here:
    """What one event loop has."""

    kept: dict[Any, Environment] = field(default_factory=dict[Any, Environment])
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True, eq=False)
class Environments:
    """The environments of one provider."""

    setup: Setup
    _kept: WeakKeyDictionary[asyncio.AbstractEventLoop, _Here] = field(
        default_factory=WeakKeyDictionary[asyncio.AbstractEventLoop, _Here]
    )
    _owners: dict[str, tuple[Environment, str | None]] = field(
        default_factory=dict[str, tuple[Environment, str | None]]
    )
    """Without a journal: where a run is that was paused, and its code until it ends."""
    _own_key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    _last: Told | None = None

    def describe(self, snapshot: Snapshot) -> Told:
        """What a snapshot comes to; nothing is started for it.

        Raises:
            SandboxUnavailable: There is no such sandbox here.
            InvalidSetting: It does not take what is granted.
        """
        last, setup = self._last, self.setup
        if last is None or last.snapshot is not snapshot:
            constraints = make_sandbox(setup.sandbox, **self._granted(snapshot)).constraints
            tools = code_tools(snapshot.tools, per_call=setup.per_call)
            self._last = last = Told(
                snapshot=snapshot, tools=tools, description=description(snapshot, tools, constraints)
            )
        return last

    async def described(self, snapshot: Snapshot) -> Told:
        """As `describe`; what is not known yet is found out off the loop."""
        if (last := self._last) is not None and last.snapshot is snapshot:
            return last
        return await asyncio.to_thread(self.describe, snapshot)

    @asynccontextmanager
    async def use(self, snapshot: Snapshot) -> AsyncGenerator[Environment]:
        """The environment for a snapshot; not closed while somebody uses it."""
        environment = await self._taken(snapshot)
        try:
            yield environment
        finally:
            environment.users -= 1

    def opening(self) -> asyncio.Lock:
        """Held while something is opened on this event loop: runs that begin at once open it together."""
        return self._kept.setdefault(asyncio.get_running_loop(), _Here()).opening

    def key(self) -> bytes:
        """What tokens are signed with: the user's key where other processes must read them."""
        return self._own_key if self.setup.journal is None else load_key()

    def waits(self, run_id: str, environment: Environment, code: str) -> None:
        """A run of this code paused; without a journal this environment has it, and nobody else."""
        if self.setup.journal is None and run_id not in self._owners:
            self._owners[run_id] = environment, code
            environment.users += 1  # it stays while somebody thinks

    async def is_waiting(self, environment: Environment, code: str) -> bool:
        """Whether a run of exactly this code is paused or was cut short."""
        if self.setup.journal is None:
            return any(code == kept for _, kept in self._owners.values())
        return await asyncio.to_thread(is_unended, environment.mode.journal, code)

    async def resume(
        self, environment: Environment, run_id: str, decisions: Mapping[str, bool | Settlement]
    ) -> ExecutionResult:
        """As `CodeMode.resume`, where the run is.

        Raises:
            UnknownRun: Nobody has it.
        """
        if self.setup.journal is not None:
            return await environment.mode.resume(run_id, decisions)
        if run_id not in self._owners:
            raise UnknownRun(run_id, hint="give the provider a journal=, which other processes share")
        owner = self._owners[run_id][0]
        try:
            result = await owner.mode.resume(run_id, decisions)
        except CodeExecutionError:
            self._let_go(run_id)
            raise
        self._let_go(run_id)
        return result

    def _let_go(self, run_id: str) -> None:
        """The run ended; where it ran tells its end again, for as long as that is open."""
        environment, code = self._owners.pop(run_id)
        environment.users -= code is not None
        self._owners[run_id] = environment, None
        for oldest in [each for each, (_, code) in self._owners.items() if code is None][:-MOST_ENDED]:
            del self._owners[oldest]

    async def aclose(self) -> None:
        """Close what this event loop has; actions paused without a journal end."""
        self._owners.clear()
        here = self._kept.pop(asyncio.get_running_loop(), None)
        for environment in here.kept.values() if here is not None else ():
            await environment.aclose()

    async def _taken(self, snapshot: Snapshot) -> Environment:
        """The environment, with one user more."""
        here = self._kept.setdefault(asyncio.get_running_loop(), _Here())
        found = here.kept.get(snapshot.key)
        if found is None:
            async with here.opening:
                found = here.kept.get(snapshot.key) or await self._opened(snapshot)
        found.users += 1
        here.kept.pop(snapshot.key, None)  # the last one of the dict is the last one used
        here.kept[snapshot.key] = found
        while len(here.kept) > MOST and (idle := next((k for k, each in here.kept.items() if not each.users), None)):
            await here.kept.pop(idle).aclose()
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
        told = await self.described(snapshot)
        own = make_sandbox(setup.sandbox, **granted) if granted else None  # without grants it is shared by name
        mode = CodeMode(
            own or setup.sandbox,
            tools=told.tools,
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
        names = [tool.name for tool in snapshot.tools]
        return Environment(mode=mode, sandbox=own, typed=dict(zip(names, told.tools, strict=False)))
