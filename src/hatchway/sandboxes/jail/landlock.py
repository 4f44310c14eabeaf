"""The second tier, for systems that refuse namespaces: Landlock, seccomp and rlimits around a supervised process.

The code sees the host's tree where the interpreter lies, and nothing else of it. No /proc, no signals to others, no
sockets, whatever domains were granted: without a net namespace they would reach the host, so `fetch` is the only way
out. Its processes are found by their descent. No files can be shown elsewhere, so there is no file surface.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hatchway.core.errors import SandboxCrashed, SandboxUnavailable
from hatchway.core.limits import Limits
from hatchway.sandboxes.guest_process import Death
from hatchway.sandboxes.jail.interpreter import InterpreterFiles
from hatchway.sandboxes.jail.launch import INSIDE, Launch, Quota
from hatchway.sandboxes.process.spawner import Python, Spawner
from hatchway.sandboxes.process.supervised import SupervisedProcess
from hatchway.sandboxes.starting import started
from hatchway.sandboxes.wall import landlock

NEEDED_VERSION = 6
"""The first Landlock that keeps signals and abstract sockets in."""
LOOK_SECONDS = 0.2
"""Between two looks at how much the code has written."""
QUOTA_VARIABLE = "HATCHWAY_QUOTA"


@dataclass(frozen=True, slots=True)
class LandlockedPython(Python):
    """An interpreter whose spawner seals each guest."""

    description: str = ""
    """What the spawner is told, as JSON."""

    @property
    def argv(self) -> list[str]:
        """The command that starts it; what a plain spawner is given follows."""
        return [self.executable, "-I", "-S", "-B", str(INSIDE / "landlocked.py"), self.description]


class LandlockedProcess(SupervisedProcess):
    """A sealed guest below its supervisor, with a folder of its own on the host's disk."""

    output = None
    gateway = None

    def __init__(self, spawner: Spawner, quota: Quota) -> None:
        super().__init__(spawner)
        self.quota = quota
        self._over = ""
        self._looking: asyncio.TimerHandle | None = None

    async def start(self, cwd: str, env: Mapping[str, str], packages: Sequence[str] = ()) -> None:
        """Ask for the process, sealed to its quota; its packages are in the spawner's description."""
        given = {"HOME": cwd, "TMPDIR": cwd, "LANG": "C.UTF-8", "PATH": "", **env}
        await super().start(cwd, {**given, QUOTA_VARIABLE: json.dumps(self.quota.order())})

    def watch(self, limits: Limits, on_death: Callable[[Death], None]) -> None:
        """As `GuestProcess` says; there is no quota on the disk, so what is written is looked at."""

        def on_end(death: Death) -> None:
            if self._looking is not None:
                self._looking.cancel()
            on_death(Death(limit=self._over) if self._over and not death.is_crash else death)

        super().watch(limits, on_end)
        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._looking = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)
        size, files = _measured(self.cwd, self.quota.disk_files)
        if files > self.quota.disk_files:
            self._over = "disk_files"
        elif size > self.quota.disk_bytes:
            self._over = "disk_bytes"
        if self._over:
            self.kill()


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
        if self._launch.has_files:
            raise SandboxUnavailable(
                "the landlock tier cannot show files: workspace_root and file_mounts need the namespaces tier",
                hint="see what refuses it with JailSandbox(tier='namespaces') or `hatchway doctor`",
            )
        check_landlock()
        check_reachable(self._launch.interpreter, self._launch.packages)
        python = LandlockedPython(
            self._launch.interpreter.executable, False, json.dumps(self._launch.landlock_message())
        )
        self._spawner = await started(lambda: Spawner(python), Spawner.close)
        self._loop = asyncio.get_running_loop()

    async def make(self, quota: Quota) -> LandlockedProcess:
        """As `TierMaker` says."""
        if self._spawner is None:
            raise SandboxCrashed("the jail is closed", hint="run the action again")
        self._made = {process for process in self._made if not process.is_dead}
        try:
            process = LandlockedProcess(self._spawner, quota)
            await process.start(tempfile.mkdtemp(prefix="hatchway-"), self._launch.environment)
        except OSError as e:
            raise SandboxCrashed(
                f"no process can be started: {os.strerror(e.errno or 0)}", hint="see `ulimit -a`"
            ) from e
        self._made.add(process)
        return process

    async def close(self) -> None:
        """As `TierMaker` says."""
        for process in tuple(self._made):
            process.kill()
            await process.wait_gone()
        self._made.clear()
        spawner, self._spawner = self._spawner, None
        if spawner is not None:
            await asyncio.to_thread(spawner.close)


def check_landlock() -> None:
    """Refuse what is weaker than the tier promises.

    Raises:
        SandboxUnavailable: The kernel's Landlock is absent or too old.
    """
    version = landlock.abi() if sys.platform == "linux" else 0
    if version < NEEDED_VERSION:
        has = f"version {version}" if version else "none"
        raise SandboxUnavailable(
            f"the landlock tier is refused here: it needs Landlock version {NEEDED_VERSION}, this kernel has {has}",
            hint="boot Linux 6.12 or later with lsm=landlock in its command line",
        )


def check_reachable(files: InterpreterFiles, packages: tuple[str, ...]) -> None:
    """For a root caller the code runs as a uid that owns nothing: it must be let through to what it reads.

    Raises:
        SandboxUnavailable: A directory on the way is closed to others.
    """
    if os.geteuid() != 0:
        return
    for path in (files.executable, *files.sys_path, *packages):
        for folder in Path(path).parents:
            if not folder.stat().st_mode & stat.S_IXOTH:
                raise SandboxUnavailable(
                    f"the landlock tier is refused here: {path} lies in {folder}, which is closed to others",
                    hint=f"chmod o+x {folder}, or JailSandbox(python='/usr/bin/python3')",
                )


def _measured(folder: str, most: int) -> tuple[int, int]:
    """Bytes and files below a folder; stops counting past `most` files."""
    size = files = 0
    todo = [folder]
    while todo and files <= most:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    files += 1
                    size += entry.stat(follow_symlinks=False).st_size
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
        except OSError:
            continue  # it has just been removed
    return size, files
