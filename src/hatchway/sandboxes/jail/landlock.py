"""The second tier, for systems that refuse namespaces: Landlock, seccomp and rlimits around a supervised process.

The code sees the host's tree where the interpreter lies, and nothing else of it. No /proc, no signals to others, no
sockets, whatever domains were granted: without a net namespace they would reach the host, so `fetch` is the only way
out. Its processes are found by their descent. Nothing can be shown at another path: what is granted is linked to from
`input/` in the working directory, and what comes back is left in `output/` beside it.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hatchway.core.errors import SandboxCrashed
from hatchway.core.limits import Limits
from hatchway.sandboxes.guest_process import Death
from hatchway.sandboxes.jail.disk_watch import DiskWatch
from hatchway.sandboxes.jail.landlock_checks import (
    check_landlock,
    check_path_rules,
    check_reachable,
    check_shown,
    check_uid,
)
from hatchway.sandboxes.jail.launch import INSIDE, Launch, quota_order
from hatchway.sandboxes.process.guest import SupervisedProcess
from hatchway.sandboxes.process.inside.scratch import remove_tree
from hatchway.sandboxes.process.python import Python
from hatchway.sandboxes.process.spawner import Spawner
from hatchway.sandboxes.quota import Quota
from hatchway.sandboxes.shortage import no_process
from hatchway.sandboxes.shown_files import link, show_input
from hatchway.sandboxes.starting import started, to_the_end


@dataclass(frozen=True, slots=True)
class LandlockedPython(Python):
    """An interpreter whose spawner seals each guest."""

    description: str = ""
    """What the spawner is told, as JSON."""

    @property
    def argv(self) -> list[str]:
        """The command that starts it; what a plain spawner is given follows."""
        flags = ["-s", "-S", *(["-B"] if sys.dont_write_bytecode else [])]
        return [self.executable, *flags, str(INSIDE / "landlocked.py"), self.description]


class LandlockedProcess(SupervisedProcess):
    """A sealed guest below its supervisor, with a folder of its own on the host's disk."""

    gateway = None

    def __init__(self, spawner: Spawner, quota: Quota) -> None:
        super().__init__(spawner)
        self.quota = quota
        self._cpu_limit = quota.cpu_seconds
        self._watching: DiskWatch | None = None

    async def begin(self, launch: Launch) -> None:
        """Ask for the process, sealed to its quota, in a folder made for it."""
        cwd = made_folder(launch)
        if launch.has_files:
            self.keep_output(f"{cwd}/output")
        given = {"HOME": cwd, "TMPDIR": cwd, "LANG": "C.UTF-8", "PATH": "", **launch.environment}
        await self.start(cwd, given, quota=quota_order(self.quota), keeps_folder=launch.has_files)

    def watch(self, limits: Limits, on_death: Callable[[Death], None]) -> None:
        """As `GuestProcess` says; there is no quota on the disk, so what is written is looked at."""
        if self._watching is None:
            self._watching = DiskWatch(
                self.cwd, self.quota, file_bytes=limits.file_bytes, processes=self.processes, kill=self.kill
            )
        super().watch(limits, self._watching.until(on_death))


class LandlockTier:
    """A spawner of sealed guests."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._spawner: Spawner | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._made: set[LandlockedProcess] = set()

    @property
    def is_alive(self) -> bool:
        """As `TierMaker` says."""
        return self._spawner is not None and self._spawner.is_alive and self._loop is asyncio.get_running_loop()

    async def start(self) -> None:
        """As `TierMaker` says."""
        self._spawner = await landlocked_spawner(self._launch)
        self._loop = asyncio.get_running_loop()

    async def make(self, quota: Quota) -> LandlockedProcess:
        """As `TierMaker` says."""
        if self._spawner is None:
            raise SandboxCrashed("the jail is closed", hint="run the action again")
        self._made = {process for process in self._made if not process.is_closed}
        try:
            process = LandlockedProcess(self._spawner, quota)
            await process.begin(self._launch)
        except OSError as e:
            raise no_process(e) from e
        self._made.add(process)
        return process

    async def close(self) -> None:
        """As `TierMaker` says."""
        await to_the_end(self._closed())

    async def _closed(self) -> None:
        for process in tuple(self._made):
            process.kill()
            await process.wait_gone()
            if process.output is not None:
                process.output.close()
                await process.wait_gone()
        self._made.clear()
        spawner, self._spawner = self._spawner, None
        if spawner is not None:
            await asyncio.to_thread(spawner.close)


async def landlocked_spawner(launch: Launch) -> Spawner:
    """A spawner whose processes seal themselves.

    Raises:
        SandboxUnavailable: The tier cannot hold, or cannot show what is granted, here.
    """
    check_landlock()
    check_uid()
    if launch.denied() is not None:
        check_path_rules()
    if not launch.is_command:  # a program imports nothing of it
        check_reachable(launch.interpreter, launch.packages)
    for path in (*launch.granted, *launch.paths.read, *launch.paths.write):
        check_shown(path, is_writable=path in launch.paths.write)
    told = json.dumps(launch.landlock_message())
    python = LandlockedPython(
        launch.interpreter.executable, False, not launch.is_command, launch.hash_seed, description=told
    )
    return await started(lambda: Spawner(python), Spawner.close)


def made_folder(launch: Launch) -> str:
    """A new folder for a guest, by its real path: that is how the guest itself calls it.

    Where files are granted they are linked from `input/`, and there is an `output/`.

    Raises:
        InvalidSetting: Something granted is gone, or cannot be shown; no folder is left then.
    """
    try:
        folder = os.path.realpath(tempfile.mkdtemp(prefix="hatchway-"))
    except FileNotFoundError as e:  # what tempfile says when every folder it knows is full
        raise OSError(errno.ENOSPC, str(e)) from e
    if launch.has_files:
        try:
            os.mkdir(f"{folder}/output")
            show_input(Path(folder), launch.workspace, launch.mounts, link, "the landlock tier")
        except BaseException:
            remove_tree(folder)
            raise
    return folder
