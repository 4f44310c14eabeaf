"""A program in the landlock tier."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hatchway.core.limits import Limits
from hatchway.sandboxes.guest_process import Death
from hatchway.sandboxes.jail.disk_watch import DiskWatch
from hatchway.sandboxes.jail.landlock import landlocked_spawner, made_folder
from hatchway.sandboxes.jail.launch import Launch, quota_order
from hatchway.sandboxes.jail.sealed_command import not_started, rlimits
from hatchway.sandboxes.process.spawner import Spawner
from hatchway.sandboxes.process.supervised import Supervised
from hatchway.sandboxes.quota import Quota
from hatchway.sandboxes.shortage import no_process


class LandlockedCommand(Supervised):
    """A sealed process below its supervisor that became a program."""

    def __init__(self, spawner: Spawner, fds: Sequence[int], quota: Quota) -> None:
        super().__init__(spawner, fds)
        self._quota, self._cpu_limit = quota, quota.cpu_seconds
        self._watching: DiskWatch | None = None

    def watch(self, limits: Limits, on_death: Callable[[Death], None]) -> None:
        """As `CommandBody` says."""
        self._watching = DiskWatch(
            self.cwd, self._quota, file_bytes=limits.file_bytes, processes=self.processes, kill=self.kill
        )
        super().watch(limits, self._watching.until(on_death))

    def send_signal(self, number: int) -> None:
        """As `CommandBody` says."""
        if self._guest and not self.is_dead:
            try:
                os.kill(self._guest, number)  # its supervisor reaps it, and says so first
            except ProcessLookupError:
                pass  # it has just died


class CommandSpawner:
    """Starts programs in the landlock tier. Made by `start`."""

    def __init__(self, launch: Launch, spawner: Spawner) -> None:
        self._launch, self._spawner = launch, spawner

    @classmethod
    async def start(cls, launch: Launch) -> CommandSpawner:
        """Build the wall.

        Raises:
            SandboxUnavailable: The tier cannot hold, or cannot show what is granted, here.
        """
        return cls(launch, await landlocked_spawner(launch))

    @property
    def is_alive(self) -> bool:
        """Whether it can start programs."""
        return self._spawner.is_alive

    async def started(
        self,
        limits: Limits,
        fds: list[int],
        *,
        argv: Sequence[str],
        environment: Mapping[str, str],
        has_tty: bool,
    ) -> LandlockedCommand:
        """A new process whose program runs; the descriptors are closed here.

        Raises:
            InvalidSetting: There is no such program in sight.
            SandboxCrashed: The spawner is gone.
        """
        quota = Quota.of(limits)
        try:
            told, theirs = os.pipe()
        except OSError:
            for fd in fds:
                os.close(fd)
            raise
        try:
            command = LandlockedCommand(self._spawner, [fds[0], theirs, *fds[1:]], quota)
            cwd = made_folder(self._launch)
            more: dict[str, Any] = {
                "argv": list(argv),
                "has_tty": has_tty,
                "quota": quota_order(quota, **rlimits(limits)),
            }
            await command.start(cwd, {**environment, "HOME": cwd, "TMPDIR": cwd}, **more)
            failed = await asyncio.to_thread(os.read, told, 4096)
        except OSError as e:
            raise no_process(e) from e
        finally:
            os.close(told)
        if failed:
            command.kill()
            await command.wait_gone()
            raise not_started(argv[0], json.loads(failed)["errno"])
        return command

    async def close(self) -> None:
        """End the spawner with everything it started."""
        await asyncio.to_thread(self._spawner.close)
