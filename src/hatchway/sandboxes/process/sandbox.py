"""ProcessSandbox: full CPython in a child process, not sealed."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

from hatchway.core.constraints import CodeConstraints
from hatchway.core.errors import HatchwayError, SandboxCrashed
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult, Tier
from hatchway.core.sandbox import Availability, CodeExecution, CodeSandbox, CodeSession, Functions, OnOutput
from hatchway.sandboxes.guest_execution import GuestExecution
from hatchway.sandboxes.process.spawner import Python, spawner_for, this_python
from hatchway.sandboxes.process.supervised import SupervisedProcess


class ProcessSandbox(CodeSandbox):
    """Full CPython in a child process. UNSEALED: the code can do whatever this user can do.

    Each execution gets a fresh process, forked from a warm one; a session keeps one.

    Args:
        python: Another interpreter (at least 3.9), with its site-packages; default is this one without them.
        env: Environment variables the code is given; default none.
        workspace_root: Where the private folder of each process is made; default is the system's temporary folder.
    """

    name: ClassVar[str] = "process"

    def __init__(
        self,
        *,
        python: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        workspace_root: str | Path | None = None,
    ) -> None:
        self.tier: Tier = "process"
        self.constraints = CodeConstraints(network=True)
        self._python = this_python() if python is None else Python(os.fspath(python), has_site=True)
        self._env = dict(env or {})
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
        process = await self._take()
        session = _ProcessSession(self, process, limits or Limits())
        try:
            yield session
        finally:
            await session.close()

    async def aclose(self) -> None:
        """As the contract says. The sandbox can be used again afterwards."""
        over = SandboxCrashed("the sandbox was closed while the code ran")
        spares, self._spares = self._spares, []
        if self._refill is not None:
            self._refill.cancel()
        for spare in spares:
            spare.close()
        await asyncio.gather(*(execution.abandon(over) for execution in tuple(self._running)))
        for process in tuple(self._processes):
            process.kill()
            await process.wait_gone()

    @classmethod
    def probe(cls) -> Availability:
        """Runs `1 + 1` in a fresh process."""
        found: list[Availability] = []
        thread = threading.Thread(target=lambda: found.append(asyncio.run(_probe(cls))))
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
        execution = GuestExecution(
            process,
            process.transport,
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
        process = self._spares.pop() if self._spares else await self._make()
        self._processes.add(process)
        if not self._spares and (self._refill is None or self._refill.done()):
            self._refill = asyncio.create_task(self._add_spare())
        return process

    async def _add_spare(self) -> None:
        self._spares.append(await self._make())

    async def _make(self) -> SupervisedProcess:
        spawner = await asyncio.to_thread(spawner_for, self._python)
        process = SupervisedProcess(spawner)
        await process.start(tempfile.mkdtemp(prefix="hatchway-", dir=self._workspace_root), self._env)
        return process


class _ProcessSession(CodeSession):
    def __init__(self, sandbox: ProcessSandbox, process: SupervisedProcess, limits: Limits) -> None:
        self._sandbox, self._process, self._limits = sandbox, process, limits
        self._current: GuestExecution | None = None

    async def execute(
        self,
        code: str,
        functions: Functions = (),
        *,
        inputs: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        on_output: OnOutput | None = None,
    ) -> CodeExecution:
        if self._current is not None and not self._current.is_over:
            raise RuntimeError("the previous action of this session has not ended")
        if self._process.is_dead:
            raise SandboxCrashed("the session is gone: its interpreter died or was killed", hint="open a new session")
        self._current = await self._sandbox._begin(self._process, code, functions, inputs, limits or self._limits, on_output, is_session=True)
        return self._current

    async def close(self) -> None:
        if self._current is not None:
            await self._current.abandon(SandboxCrashed("the session was left while the code ran"))
        self._process.kill()


async def _probe(cls: type[ProcessSandbox]) -> Availability:
    try:
        async with cls() as sandbox:
            execution = await sandbox.execute("1 + 1")
            result = await execution.next()
            assert isinstance(result, ExecutionResult) and result.output == 2
    except HatchwayError as e:
        return Availability(state="installed_but_unusable", reason=e.message, hint=e.hint)
    weaker = "" if sys.platform == "linux" else "; only the code's own process group is killed with it"
    return Availability(state="usable", tier="process", reason=f"unsealed: the code can do whatever this user can do{weaker}")
