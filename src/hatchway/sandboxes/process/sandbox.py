"""ProcessSandbox: full CPython in a child process, not sealed."""

from __future__ import annotations

import asyncio
import copy
import os
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from hatchway.core.constraints import CodeConstraints
from hatchway.core.errors import HatchwayError, SandboxCrashed, SandboxUnavailable
from hatchway.core.grants import AllowedDomainInput, FileMountInput, as_file_mounts
from hatchway.core.limits import Limits
from hatchway.core.network import NetworkRules
from hatchway.core.results import ExecutionResult, Tier
from hatchway.core.sandbox import Availability, CodeExecution, CodeSandbox, CodeSession, Functions, OnOutput
from hatchway.core.transport import CallbackTransport
from hatchway.sandboxes.guest_execution import GuestExecution
from hatchway.sandboxes.packages.environment import environment_of
from hatchway.sandboxes.packages.existing import installed, site_packages
from hatchway.sandboxes.packages.requirements import Packages
from hatchway.sandboxes.process.session import ProcessSession
from hatchway.sandboxes.process.side_channel import SideChannel
from hatchway.sandboxes.process.spawner import Python, running_spawner, spawner_for, this_python
from hatchway.sandboxes.process.supervised import SupervisedProcess
from hatchway.sandboxes.process.workspace import check_mounts, make_workspace, stage

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
        self.constraints = CodeConstraints(network=True, packages=names)
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
        process = await self._take()
        return await self._begin(process, code, functions, inputs, limits or Limits(), on_output, is_session=False)

    @asynccontextmanager
    async def session(self, *, limits: Limits | None = None) -> AsyncGenerator[CodeSession]:
        """As the contract says; one process for all actions of the session."""
        session = ProcessSession(await self._take(), self._begin, limits or Limits())
        try:
            yield session
        finally:
            await session.close()

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

    async def _begin(
        self,
        process: SupervisedProcess,
        code: str,
        functions: Functions,
        inputs: Mapping[str, Any] | None,
        limits: Limits,
        on_output: OnOutput | None,
        *,
        is_session: bool,
    ) -> GuestExecution:
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
        await execution.begin(code, functions, inputs)
        return execution

    async def _take(self) -> SupervisedProcess:
        """A process nobody has used; another spare is made meanwhile."""
        if not self._environment.is_ready:
            await self._environment.ensure()
        self._sweep()
        while self._spares and not self._spares[-1].is_fresh:
            self._spares.pop().close()
        process = self._spares.pop() if self._spares else await self._make()
        self._processes.add(process)
        if self._mounts:
            await asyncio.to_thread(stage, self._mounts, process.cwd)
        if not self._spares and (self._refill is None or self._refill.done()):
            self._refill = asyncio.create_task(self._add_spare())
        return process

    async def _add_spare(self) -> None:
        try:
            self._spares.append(await self._make())
        except (OSError, HatchwayError):
            pass  # the next execution tries again, and tells

    async def _make(self) -> SupervisedProcess:
        spawner = running_spawner(self._python) or await asyncio.to_thread(spawner_for, self._python)
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
