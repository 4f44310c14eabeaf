"""ProcessSandbox: full CPython in a child process, not sealed."""

from __future__ import annotations

import asyncio
import copy
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from hatchway.core.constraints import CodeConstraints
from hatchway.core.errors import HatchwayError, SandboxCrashed
from hatchway.core.grants import AllowedDomainInput, FileMountInput, as_environment, as_file_mounts, as_workspace
from hatchway.core.limits import Limits
from hatchway.core.network import NetworkRules
from hatchway.core.results import Tier
from hatchway.core.sandbox import Availability
from hatchway.core.transport import CallbackTransport
from hatchway.sandboxes.eviction import Sessions
from hatchway.sandboxes.guest_process import GuestChannel
from hatchway.sandboxes.guest_sandbox import GuestSandbox
from hatchway.sandboxes.ipython import MODULE, is_wanted
from hatchway.sandboxes.packages.environment import environment_of
from hatchway.sandboxes.packages.existing import has_module, installed, site_packages
from hatchway.sandboxes.packages.requirements import Packages
from hatchway.sandboxes.probing import added, probed
from hatchway.sandboxes.process.files import Files
from hatchway.sandboxes.process.guest import SupervisedProcess
from hatchway.sandboxes.process.python import Python, this_python
from hatchway.sandboxes.process.side_channel import SideChannel
from hatchway.sandboxes.process.spawners import Spawners
from hatchway.sandboxes.shown_files import PLACES

UNSEALED = "unsealed: the code can do whatever this user can do"


class ProcessSandbox(GuestSandbox[SupervisedProcess]):
    """Full CPython in a child process. UNSEALED: the code can do whatever this user can do.

    Each execution gets a fresh process, forked from a warm one; a session keeps one. The code's working directory is
    a private folder that is removed with it, unless there is a `workdir`. `"auto"` never chooses this sandbox.

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
        workspace_root: A directory linked to as `input/` in the working directory; also turns `output/` on, whose
            files come back. Nothing keeps the code from changing the directory.
        file_mounts: Files and folders copied to `input/`, without write permission. Turns `output/` on.
        workdir: A directory the code works in, at its own path; its modules can be imported.
        scratch_root: Where the private folders are made; default is the system's temporary folder.
        allowed_domains: What `fetch` may reach; nothing by default. The code's own sockets are not held to it.
        denied_domains: What `fetch` may not reach, whatever is allowed.

    Raises:
        InvalidSetting: A mount cannot be read or is not below `input/`, a domain is none, or `workdir` no directory.
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
        workdir: str | Path | None = None,
        scratch_root: str | Path | None = None,
        allowed_domains: Iterable[AllowedDomainInput] = (),
        denied_domains: Iterable[str] = (),
    ) -> None:
        super().__init__(Sessions(idle_seconds=session_idle_seconds, most=max_sessions))
        self.network = NetworkRules.of(allowed_domains, denied_domains)
        self.tier: Tier = "process"
        self._transport = partial(copy.copy, transport) if isinstance(transport, CallbackTransport) else transport
        self._python = this_python() if python is None else Python(os.fspath(python), has_site=True)
        self._version = self._python.version
        self._environment = environment_of(packages, executable=self._python.executable)
        already = () if python is None else site_packages(os.fspath(python))
        names = (*self._environment.names, *(name for folder in already for name in installed(folder)))
        self._workdir = None if workdir is None else str(as_workspace(workdir, "workdir"))
        self._files = Files(as_workspace(workspace_root), as_file_mounts(file_mounts), scratch_root)
        self.constraints = CodeConstraints(
            network=True, packages=names, displays=True, additional_instructions=PLACES if self._files.is_any else ""
        )
        self._ipython, self._site_folders = ipython, already
        self._env = as_environment(env)
        self._spawners = Spawners()
        self._spares: list[SupervisedProcess] = []
        self._refill: asyncio.Task[None] | None = None
        self._processes: set[SupervisedProcess] = set()

    async def aclose(self) -> None:
        """As the contract says. The sandbox can be used again afterwards."""
        self._sweep()
        if self._refill is not None:
            self._refill.cancel()
            await asyncio.wait([self._refill])
        while self._spares:
            self._spares.pop().close()
        await super().aclose()
        for process in tuple(self._processes):
            process.kill()
        for process in tuple(self._processes):
            await process.discard()
        self._processes.clear()
        await asyncio.to_thread(self._spawners.give_back)

    @classmethod
    def probe(cls) -> Availability:
        """Runs `1 + 1` in a fresh process."""
        return probed(lambda: _probe(cls))

    @property
    def facts(self) -> Mapping[str, str]:
        """As the contract says."""
        return {
            "python": self._version,
            "hash_seed": str(self._python.hash_seed),
            "packages": ", ".join(self._environment.names),
        }

    def _wants_ipython(self) -> bool:
        is_there = self._environment.has_module(MODULE) or has_module(self._site_folders, MODULE)
        return is_wanted(self._ipython, is_there=is_there)

    def _channel(self, process: SupervisedProcess, limits: Limits) -> GuestChannel:
        if self._transport is None:
            return process.transport
        return SideChannel(process.transport, self._transport(), value_bytes=limits.value_bytes)

    async def _take(self, limits: Limits, facts: Mapping[str, str]) -> SupervisedProcess:
        """A process nobody has used; another spare is made meanwhile."""
        if not self._environment.is_ready:
            await self._environment.ensure()
        self._sweep()
        while self._spares and not self._spares[-1].is_fresh:
            self._spares.pop().close()
        python = _with_seed(self._python, facts.get("hash_seed", ""))
        process = self._spares.pop() if self._spares and python == self._python else await self._make(python)
        self._processes.add(process)
        if self._files.is_any:
            await self._show_files(process)
        if not self._spares and (self._refill is None or self._refill.done()):
            self._refill = asyncio.create_task(self._add_spare())
        return process

    async def _show_files(self, process: SupervisedProcess) -> None:
        try:
            await asyncio.to_thread(self._files.show, process.cwd)
        except BaseException:
            await process.discard()
            raise

    async def _add_spare(self) -> None:
        try:
            self._spares.append(await self._make(self._python))
        except (OSError, HatchwayError):
            pass  # the next execution tries again, and tells

    async def _make(self, python: Python) -> SupervisedProcess:
        spawner = self._spawners.running(python) or await asyncio.to_thread(self._spawners.get, python)
        process, folder = SupervisedProcess(spawner), self._files.make_folder()
        try:
            if self._files.is_any:
                process.keep_output(f"{folder}/output")
            more = {"keeps_folder": self._files.is_any, "workdir": self._workdir}
            await process.start(folder, self._env, self._environment.folders, **more)
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


def _with_seed(python: Python, seed: str) -> Python:
    """The interpreter with the hash seed of a recording: sets of text come in the order they had."""
    return replace(python, hash_seed=int(seed)) if seed.isdigit() else python


async def _probe(cls: type[ProcessSandbox]) -> Availability:
    try:
        async with cls() as sandbox:
            await added(sandbox)
    except HatchwayError as e:
        return Availability(state="installed_but_unusable", reason=e.message, hint=e.hint)
    weaker = "" if sys.platform == "linux" else "; only the code's own process group is killed with it"
    return Availability(state="usable", tier="process", reason=UNSEALED + weaker)
