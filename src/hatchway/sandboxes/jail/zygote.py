"""The host's end of a zygote: starts it, opens slots in it, ends it."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hatchway.core.errors import SandboxCrashed, SandboxUnavailable
from hatchway.sandboxes.jail.cgroups import Cgroup, Cgroups, planned_folders
from hatchway.sandboxes.jail.launch import INSIDE, Launch
from hatchway.sandboxes.jail.link import Link
from hatchway.sandboxes.jail.refusals import refusal
from hatchway.sandboxes.quota import Quota
from hatchway.sandboxes.shortage import is_shortage, no_process
from hatchway.sandboxes.starting import started, to_the_end

START_SECONDS = 30.0
END_SECONDS = 5.0
DYING_SECONDS = 0.5
"""After so long a slot that was shut is dead, and its cgroup can be removed."""
MOST_FREE = 16
"""Slots kept for children to come: each is a process, and to open one takes ten milliseconds."""


_log = logging.getLogger("hatchway")


class DiedMute(SandboxCrashed):
    """It ended while it started, and did not say why."""


@dataclass(slots=True)
class Slot:
    """Where a child is born: the zygote itself or, where memory cgroups can be had, a copy of it in one."""

    link: Link
    cgroup: Cgroup | None


class Zygote:
    """A running zygote on one event loop."""

    def __init__(self, process: subprocess.Popen[bytes], link: Link) -> None:
        self.loop = link.loop
        self._process = process
        self._link = link
        self._cgroups: Cgroups | None = None
        self._slots: list[Slot] = []
        self._free: list[Slot] = []

    @classmethod
    async def start(cls, launch: Launch) -> Zygote:
        """Start one and wait until its walls stand. One that dies without a word is started a second time.

        Raises:
            SandboxUnavailable: The system refuses a part of the walls.
            SandboxCrashed: It died while starting.
        """
        try:
            return await cls._attempted(launch)
        except DiedMute as e:
            _log.warning("%s; it is started again", e.message)
            return await cls._attempted(launch)

    @classmethod
    async def _attempted(cls, launch: Launch) -> Zygote:
        process, control = await started(lambda: _executed(launch), _killed)
        zygote = cls(process, Link(control))
        try:
            async with asyncio.timeout(START_SECONDS):
                told = await zygote._launched(launch)
            if "failed" in told:
                raise refusal(told)
        except TimeoutError as e:
            await zygote.close()
            raise SandboxCrashed(f"the jail did not start in {START_SECONDS:g} s", hint="hatchway doctor") from e
        except BaseException:
            await zygote.close()
            raise
        return zygote

    @property
    def is_alive(self) -> bool:
        """Whether it takes orders."""
        return self._link.is_heard()

    @property
    def keeper_pid(self) -> int:
        """The process everything of the jail dies with."""
        return self._process.pid

    async def slot(self, quota: Quota, order: Mapping[str, Any]) -> Slot:
        """A slot with nobody in it, whose cgroup, if any, has this limit. Give it back with `release`.

        Args:
            quota: What its next child is held to.
            order: That child's, for walls that can be thought out once.

        Raises:
            SandboxCrashed: The zygote is gone.
            OSError: There is no room for another process.
        """
        while self._free:
            slot = self._free.pop()
            if slot.link.is_heard():
                break
        else:
            slot = await self._opened(order)
        if slot.cgroup is not None:
            slot.cgroup.prepare(quota.memory_bytes)
        return slot

    def release(self, slot: Slot) -> None:
        """Everything that was born in it is dead."""
        if slot.cgroup is None or not slot.link.is_alive:
            return
        self._free.append(slot)
        if len(self._free) > MOST_FREE:
            self._shut(self._free.pop(0))

    async def close(self) -> None:
        """End it, and with it every child; everything is dead and given back when this returns. Legal twice.

        Also for a caller that is cancelled meanwhile.
        """
        self._link.close()
        await to_the_end(self._ended())

    async def _launched(self, launch: Launch) -> dict[str, Any]:
        """What it says once its walls stand, or do not.

        Raises:
            DiedMute: It ended without a word; then how it ended is all that is known.
        """
        planned = planned_folders()
        try:
            await self._link.send(launch.message([folder for folder, _ in planned]))
            self._cgroups = Cgroups.create(planned)  # the keeper knows of them: killed from here on, we leave nothing
            return await self._link.first_message()
        except (SandboxUnavailable, SandboxCrashed) as e:
            await self.close()
            how = _ending(self._process.returncode)
            raise DiedMute(f"the jail ended while it started: {how}", hint="hatchway doctor") from e

    async def _ended(self) -> None:
        deadline = self.loop.time() + END_SECONDS
        try:
            while self._process.poll() is None:
                if self.loop.time() > deadline:
                    self._process.kill()
                await asyncio.sleep(0.002)
            while self._cgroups is not None and not self._cgroups.close():
                if self.loop.time() > deadline:
                    break
                await asyncio.sleep(0.002)
        finally:
            if self._process.returncode is None:  # the loop itself ends
                self._process.kill()
                self._process.wait()
            for slot in self._slots:
                slot.link.close()
            if self._cgroups is not None:
                self._cgroups.close()

    def _shut(self, slot: Slot) -> None:
        self._slots.remove(slot)
        slot.link.close()
        if self._cgroups is not None and slot.cgroup is not None:
            self._cgroups.retire(slot.cgroup)
            self.loop.call_later(DYING_SECONDS, self._cgroups.sweep)

    async def _opened(self, order: Mapping[str, Any]) -> Slot:
        if self._cgroups is None:
            return Slot(self._link, None)
        cgroup = self._cgroups.new()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        slot = Slot(Link(ours), cgroup)
        self._slots.append(slot)
        with theirs, cgroup.entrance() as entrance:
            walls = {name: order[name] for name in ("disk_bytes", "disk_files", "rlimits")}
            fds = [theirs.fileno(), entrance.fileno()]
            await self._link.send({"slot": True, "has_cgroup": True, **walls}, fds)
        try:
            told = await slot.link.first_message()
        except SandboxUnavailable as e:
            raise SandboxCrashed("the jail is gone", hint="run the action again") from e
        if "failed" in told:
            self._shut(slot)
            raise OSError(told["errno"], told["failed"])
        return slot


def _executed(launch: Launch) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Executed, not forked: nothing of this process's memory or environment reaches it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        # not -B, unless this process has it: to compile our files anew is a fifth of a start
        flags = ["-s", "-S", *(["-B"] if sys.dont_write_bytecode else [])]
        command = [launch.interpreter.executable, *flags, str(INSIDE / "keeper.py"), str(theirs.fileno())]
        environment = {"PYTHONHASHSEED": str(launch.hash_seed)}
        try:
            process = subprocess.Popen(
                command,
                env=environment,
                cwd="/",
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # a signal to the host's group must not take away who tidies up after it
            )
        except OSError as e:
            ours.close()
            if is_shortage(e.errno):
                raise no_process(e) from e
            raise SandboxUnavailable(f"{command[0]} cannot be started: {e}", hint=f"try: {command[0]} -V") from e
    return process, ours


def _ending(code: int) -> str:
    """What the end of a keeper tells, which ends as its zygote did."""
    if code < 0:
        return f"its keeper was killed by signal {-code}"
    return f"its zygote was killed by signal {code - 128}" if code > 128 else f"its keeper ended with exit code {code}"


def _killed(made: tuple[subprocess.Popen[bytes], socket.socket]) -> None:
    process, control = made
    control.close()
    process.kill()
    process.wait()
