"""ProcessSandbox: full CPython in a child process, not sealed."""

from __future__ import annotations

import asyncio
import copy
import os
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from hatchway.core.constraints import CodeConstraints
from hatchway.core.errors import HatchwayError, SandboxCrashed, SandboxUnavailable
from hatchway.core.grants import AllowedDomainInput, FileMountInput, as_file_mounts
from hatchway.core.limits import DEFAULT_LIMITS, Limits
from hatchway.core.network import NetworkRules
from hatchway.core.recording import Recording
from hatchway.core.results import ExecutionResult, Tier
from hatchway.core.sandbox import Availability, CodeExecution, CodeSandbox, CodeSession, Functions, OnOutput
from hatchway.core.transport import CallbackTransport
from hatchway.sandboxes.eviction import Sessions
from hatchway.sandboxes.guest_execution import GuestExecution
from hatchway.sandboxes.ipython import MODULE, is_wanted
from hatchway.sandboxes.packages.environment import environment_of
from hatchway.sandboxes.packages.existing import has_module, installed, site_packages
from hatchway.sandboxes.packages.requirements import Packages
from hatchway.sandboxes.past import Past
from hatchway.sandboxes.process.session import ProcessSession
from hatchway.sandboxes.process.side_channel import SideChannel
from hatchway.sandboxes.process.spawner import Python, running_spawner, spawner_for, this_python
from hatchway.sandboxes.process.supervised import SupervisedProcess
from hatchway.sandboxes.process.workspace import check_mounts, make_workspace, stage
from hatchway.sandboxes.recorded import Origin, check_facts, fresh
from hatchway.sandboxes.replay import replayed
from hatchway.sandboxes.restoring import restored, restored_session

UNSEALED = "unsealed: the code can do whatever this user can do"


class ProcessSandbox(CodeSandbox):
    """Full CPython in a child process. UNSEALED: the code can do whatever this user can do.

    Each execution gets a fresh process, forked from a warm one; a session keeps one. The code's working directory is
    a private folder that is removed with it. `"auto"` never chooses this sandbox.

    Args:
        transport: Carries the calls, such as `HttpCallbackTransport()`: each execution has a copy of it, or what a
            factory makes; default is the guest's own channel, which is faster.
        python: Another interpreter (at least 3.9), with its site-packages; default is this one without them.
        packages: What the code may import beside the standard library, such as `["pandas==2.*"]`, or a `Packages`;
            built once by uv before the first action, then cached.
        ipython: True runs the actions of sessions IPython's way (`!cmd`, `%magics`, `_`), False never does; None does
            so where the packages or the environment have IPython.
        session_idle_seconds: A session without an action for so long is evicted; None never does.
        max_sessions: Sessions open at one time; past it the one that was idle longest is evicted. None sets no limit.
        env: Environment variables the code is given; default none.
        file_mounts: Files and folders copied to `input/` in the working directory, without write permission.
        workspace_root: Where the private folders are made; default is the system's temporary folder.
        allowed_domains: What `fetch` may reach; nothing by default. The code's own sockets are not held to it.
        denied_domains: What `fetch` may not reach, whatever is allowed.

    Raises:
        InvalidSetting: A mount does not exist or is not below `input/`, or a domain is none.
    """

    name: ClassVar[str] = "process"

    def __init__(
        self,
        *,
        transport: CallbackTransport | Callable[[], CallbackTransport] | None = None,
        python: str | Path | None = None,
        packages: Packages | Iterable[str] = (),
        ipython: bool | None = None,
        session_idle_seconds: float | None = None,
        max_sessions: int | None = None,
        env: Mapping[str, str] | None = None,
        file_mounts: Iterable[FileMountInput] = (),
        workspace_root: str | Path | None = None,
        allowed_domains: Iterable[AllowedDomainInput] = (),
        denied_domains: Iterable[str] = (),
    ) -> None:
        self.network = NetworkRules.of(allowed_domains, denied_domains)
        self.tier: Tier = "process"
        self._transport = partial(copy.copy, transport) if isinstance(transport, CallbackTransport) else transport
        self._python = this_python() if python is None else Python(os.fspath(python), has_site=True)
        self._environment = environment_of(packages, executable=self._python.executable)
        already = () if python is None else site_packages(os.fspath(python))
        names = (*self._environment.names, *(name for folder in already for name in installed(folder)))
        self.constraints = CodeConstraints(network=True, packages=names, displays=True)
        self._ipython, self._site_folders = ipython, already
        self._sessions = Sessions(idle_seconds=session_idle_seconds, most=max_sessions)
        self._env = dict(env or {})
        self._mounts = as_file_mounts(file_mounts)
        check_mounts(self._mounts)
        self._workspace_root = workspace_root
        self._spares: list[SupervisedProcess] = []
        self._refill: asyncio.Task[None] | None = None
        self._running: set[GuestExecution] = set()
        self._processes: set[SupervisedProcess] = set()

    async def execute(
        self,
        code: str,
        functions: Functions = (),
        *,
        inputs: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        on_output: OnOutput | None = None,
    ) -> CodeExecution:
        """As the contract says, in a fresh process."""
        recording = fresh(code, functions, inputs, limits or DEFAULT_LIMITS, self.facts)
        return await self._begin(await self._take(), Origin(recording, self.name), on_output, is_session=False)

    async def replay(self, recording: Recording, *, on_output: OnOutput | None = None) -> CodeExecution:
        """As the contract says; calls that go by another transport are matched by the order the host saw."""
        check_facts(recording, self.facts)

        async def start(on_output: OnOutput | None) -> GuestExecution:
            process = await self._take(recording)
            return await self._begin(process, Origin(recording, self.name), on_output, is_session=False)

        return await replayed(recording, start, on_output)

    async def restore(self, checkpoint: bytes, *, on_output: OnOutput | None = None) -> CodeExecution | None:
        """As the contract says: the code is run again to where it stood."""
        return await restored(checkpoint, self, on_output)

    @asynccontextmanager
    async def session(self, *, limits: Limits | None = None) -> AsyncGenerator[CodeSession]:
        """As the contract says; one process for all actions of the session."""
        async with self.replay_session((), limits=limits) as session:
            yield session

    @asynccontextmanager
    async def replay_session(
        self, actions: Sequence[Recording], *, limits: Limits | None = None
    ) -> AsyncGenerator[CodeSession]:
        """As the contract says."""
        for action in actions:
            check_facts(action, self.facts)
        async with self._sessions.place() as hold:
            process = await self._take(actions[0] if actions else None)
            session = ProcessSession(
                process, self._begin, Past(self.name, self._facts_of(process)), limits or DEFAULT_LIMITS
            )
            try:
                if is_wanted(self._ipython, is_there=self._has_ipython()):
                    await session.start_ipython(self.name, self.facts)
                await session.repeat(actions)
                hold(session)
                yield session
            finally:
                await session.close()

    @asynccontextmanager
    async def restore_session(self, checkpoint: bytes) -> AsyncGenerator[CodeSession | None]:
        """As the contract says: its actions are run again."""
        async with restored_session(checkpoint, self) as session:
            yield session

    async def aclose(self) -> None:
        """As the contract says. The sandbox can be used again afterwards."""
        self._sweep()
        if self._refill is not None:
            self._refill.cancel()
            await asyncio.wait([self._refill])
        while self._spares:
            self._spares.pop().close()
        over = SandboxCrashed("the sandbox was closed while the code ran")
        await asyncio.gather(*(execution.abandon(over) for execution in tuple(self._running)))
        for process in tuple(self._processes):
            process.kill()
        for process in tuple(self._processes):
            await process.wait_gone()
        self._processes.clear()

    @classmethod
    def probe(cls) -> Availability:
        """Runs `1 + 1` in a fresh process."""
        found: list[Availability] = []
        thread = threading.Thread(target=lambda: found.append(asyncio.run(_probe(cls))))  # a loop may run in this one
        thread.start()
        thread.join()
        return found[0]

    @property
    def facts(self) -> Mapping[str, str]:
        """As the contract says."""
        return {"python": self._python.version, "hash_seed": str(self._python.hash_seed)}

    def _has_ipython(self) -> bool:
        return self._environment.has_module(MODULE) or has_module(self._site_folders, MODULE)

    def _facts_of(self, process: SupervisedProcess) -> Mapping[str, str]:
        return {**self.facts, "hash_seed": str(process.hash_seed)}

    async def _begin(
        self, process: SupervisedProcess, origin: Origin, on_output: OnOutput | None, *, is_session: bool
    ) -> GuestExecution:
        limits = origin.recording.limits
        channel = process.transport
        if self._transport is not None:
            channel = SideChannel(channel, self._transport(), value_bytes=limits.value_bytes)
        execution = GuestExecution(
            process,
            channel,
            limits=limits,
            tier=self.tier,
            is_session=is_session,
            on_output=on_output,
            on_end=lambda: self._running.discard(execution),
        )
        self._running.add(execution)
        await execution.begin(origin)
        return execution

    async def _take(self, recording: Recording | None = None) -> SupervisedProcess:
        """A process nobody has used, as a recording needs it; another spare is made meanwhile."""
        if not self._environment.is_ready:
            await self._environment.ensure()
        self._sweep()
        while self._spares and not self._spares[-1].is_fresh:
            self._spares.pop().close()
        python = self._python if recording is None else _like(self._python, recording)
        process = self._spares.pop() if self._spares and python == self._python else await self._make(python)
        self._processes.add(process)
        if self._mounts:
            await asyncio.to_thread(stage, self._mounts, process.cwd)
        if not self._spares and (self._refill is None or self._refill.done()):
            self._refill = asyncio.create_task(self._add_spare())
        return process

    async def _add_spare(self) -> None:
        try:
            self._spares.append(await self._make(self._python))
        except (OSError, HatchwayError):
            pass  # the next execution tries again, and tells

    async def _make(self, python: Python) -> SupervisedProcess:
        spawner = running_spawner(python) or await asyncio.to_thread(spawner_for, python)
        process = SupervisedProcess(spawner)
        try:
            await process.start(make_workspace(self._workspace_root), self._env, self._environment.folders)
        except OSError as e:
            raise SandboxCrashed("the process that forks guests died", hint="run the action again") from e
        return process

    def _sweep(self) -> None:
        """Forget processes that are gone, and what a closed event loop left behind."""
        for process in tuple(self._processes):
            if process.is_stranded:
                process.close()
        self._processes = {process for process in self._processes if not process.is_closed}
        self._running = {execution for execution in self._running if not execution.is_stranded}
        if self._refill is not None and self._refill.get_loop().is_closed():
            self._refill = None


def _like(python: Python, recording: Recording) -> Python:
    """The interpreter with the hash seed of a recording: sets of text come in the order they had."""
    seed = recording.facts.get("hash_seed", "")
    return replace(python, hash_seed=int(seed)) if seed.isdigit() else python


async def _probe(cls: type[ProcessSandbox]) -> Availability:
    try:
        async with cls() as sandbox:
            result = await (await sandbox.execute("1 + 1")).next()
            if not isinstance(result, ExecutionResult) or result.output != 2:
                raise SandboxUnavailable(f"1 + 1 gave {result!r}")
    except HatchwayError as e:
        return Availability(state="installed_but_unusable", reason=e.message, hint=e.hint)
    weaker = "" if sys.platform == "linux" else "; only the code's own process group is killed with it"
    return Availability(state="usable", tier="process", reason=UNSEALED + weaker)
