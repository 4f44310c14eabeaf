"""A sealed process of the zygote, as the host sees it."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import select
import signal
import socket
from array import array
from collections.abc import Callable, Iterable
from typing import Any

from hatchway.core.errors import SandboxCrashed
from hatchway.core.limits import Limits
from hatchway.sandboxes.guest_process import Death
from hatchway.sandboxes.jail.cgroups import Cgroup
from hatchway.sandboxes.jail.cpu_time import CpuTime
from hatchway.sandboxes.jail.egress import Egress, Gateway
from hatchway.sandboxes.jail.zygote import Slot, Zygote
from hatchway.sandboxes.output_folder import OutputFolder
from hatchway.sandboxes.process.inside import tree
from hatchway.sandboxes.quota import Quota
from hatchway.sandboxes.shortage import is_shortage, no_process

HELLO_BYTES = 4096
MAX_FDS = 8
LOOK_SECONDS = 0.05
"""Between two looks at the memory of all processes of a child."""
SIGNALS = {number.value: number.name for number in signal.Signals}


class SealedProcess:
    """A process in a pid namespace of its own: when its init is killed, everything in there dies.

    Bound to the zygote's event loop.
    """

    def __init__(self, zygote: Zygote, quota: Quota, egress: Egress | None = None) -> None:
        self.quota = quota
        self._egress = egress
        self.output: OutputFolder | None = None
        self.gateway: Gateway | None = None
        self._zygote = zygote
        self._slot: Slot | None = None
        self._init = self._guest = -1
        self._init_pid = self._pid = 0
        self._death: Death | None = None
        self._on_death: Callable[[Death], None] | None = None
        self._gone: asyncio.Future[None] = zygote.loop.create_future()
        self._cpu: CpuTime | None = None
        self._cpu_at_end = 0.0
        self._reason, self._errno = "", 0
        self._is_over_memory = False
        self._timer: asyncio.TimerHandle | None = None

    async def _ordered(self, order: dict[str, Any], fds: list[int]) -> socket.socket:
        """Have it forked with these descriptors, which are closed here; the channel, once its walls stand.

        Raises:
            SandboxCrashed: The zygote is gone, or a wall could not be put up.
        """
        try:
            return await self._started(order, fds)
        except BaseException as e:
            self.kill()
            self._die(Death(is_crash=True))
            if isinstance(e, OSError):
                raise no_process(e) from e
            raise

    @property
    def is_dead(self) -> bool:
        """Whether it takes no more actions."""
        return self._death is not None

    @property
    def is_fresh(self) -> bool:
        """As `JailedProcess` says."""
        return self._death is None and not self.has_ended()

    @property
    def has_output(self) -> bool:
        """Whether its `/output` can still be read."""
        return self.output is not None and self.output.fd >= 0

    def watch(self, limits: Limits, on_death: Callable[[Death], None]) -> None:
        """As `GuestProcess` says. The kernel holds it to its limits from birth; what it cannot count is looked at."""
        self._on_death = on_death
        if self._death is not None:
            self._zygote.loop.call_soon(on_death, self._death)
            return
        if self._cpu is not None:
            self._cpu.open()
        if self._timer is None:
            self._timer = self._zygote.loop.call_later(LOOK_SECONDS, self._look)

    def kill(self) -> None:
        """As `GuestProcess` says."""
        if self._init >= 0:
            try:
                signal.pidfd_send_signal(self._init, signal.SIGKILL)
            except ProcessLookupError:
                pass  # dead; the zygote is about to say so

    def retire(self) -> None:
        """As `GuestProcess` says; its files outlive it."""
        if self._cpu is not None:
            self._cpu.close()  # it was asked for the last time
        self.kill()

    def has_ended(self) -> bool:
        """As `GuestProcess` says."""
        if self._guest < 0:
            return True
        poll = select.poll()
        poll.register(self._guest, select.POLLIN)
        return bool(poll.poll(0))

    async def wait_gone(self) -> None:
        """Until everything of it is dead."""
        await asyncio.shield(self._gone)

    def cpu_seconds(self) -> float:
        """As `GuestProcess` says."""
        if self._death is None and self._cpu is not None and (seconds := self._cpu.seconds()) is not None:
            self._cpu_at_end = seconds
        return self._cpu_at_end

    def peak_memory(self) -> int:
        """As `GuestProcess` says; 0 without a cgroup."""
        return self._cgroup.peak_bytes() if self._cgroup is not None else 0

    @property
    def _cgroup(self) -> Cgroup | None:
        return self._slot.cgroup if self._slot is not None else None

    async def _started(self, order: dict[str, Any], fds: list[int]) -> socket.socket:
        try:
            ours, theirs = socket.socketpair()
        except OSError:
            _close(fds)
            raise
        ours.setblocking(False)
        try:
            with theirs:
                try:
                    self._slot = slot = await self._zygote.slot(self.quota, order)
                    order = {**order, "has_cgroup": slot.cgroup is not None}
                    await slot.link.order(order, [theirs.fileno(), *fds], self._on_died)
                finally:
                    _close(fds)
            await self._take_hello(ours)
        except BaseException:
            ours.close()
            raise
        return ours

    async def _take_hello(self, ours: socket.socket) -> None:
        """The child's one message that carries descriptors; from here on the channel is only read."""
        loop = self._zygote.loop
        came: asyncio.Future[None] = loop.create_future()
        loop.add_reader(ours.fileno(), lambda: came.done() or came.set_result(None))
        try:
            await came
        finally:
            loop.remove_reader(ours.fileno())
        data, ancillary, _, _ = ours.recvmsg(HELLO_BYTES, socket.CMSG_SPACE(MAX_FDS * 4), socket.MSG_CMSG_CLOEXEC)
        fds = array("i")
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
        told: dict[str, Any] = json.loads(data) if data else {"sealed": False}
        if not told["sealed"]:
            await self.wait_gone()
            reason, number = told.get("reason") or self._reason or "it died", told.get("errno") or self._errno
            if is_shortage(number):
                raise OSError(number, reason)
            raise SandboxCrashed(f"a child could not be sealed: {reason}", hint="hatchway doctor")
        try:
            self._take_descriptors(told["fds"], fds)
        except BaseException:
            _close({*fds} - {self._init, self._guest})
            raise
        if self._death is not None and self._death.is_crash:
            raise SandboxCrashed("the jail is gone", hint="run the action again")

    def _take_descriptors(self, names: list[str], fds: array[int]) -> None:
        if len(names) != len(fds):  # the kernel drops what this process has no room for
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        if self._death is not None:  # its end was heard before its hello: a program can be that short
            _close(fds)
            return
        given = dict(zip(names, fds, strict=True))
        self._init, self._guest = given["init"], given["guest"]
        self._init_pid, self._pid = _pid_of(self._init), _pid_of(self._guest)
        self._cpu = CpuTime(self._pid, self._init_pid)
        self.output = OutputFolder(given["output"]) if "output" in given else None
        if self._egress is not None:
            self.gateway = self._egress.gateway(socket.socket(fileno=given["listener"]))

    def _on_died(self, told: dict[str, Any] | None) -> None:
        if told is None:
            self.kill()  # should only the copy of the zygote have died, its children have not
            self._die(Death(is_crash=True))
            return
        self._cpu_at_end = max(self._cpu_at_end, told.get("cpu", 0.0))
        self._reason, self._errno = told.get("reason", ""), told.get("errno") or 0
        self._die(self._death_of(told.get("status")))

    def _death_of(self, status: int | None) -> Death:
        if self._is_over_memory or (self._cgroup is not None and self._cgroup.was_over()):
            return Death(limit="memory_bytes")
        if status is None:
            return Death()
        if status >= 0:
            return Death(exit_code=status)
        if -status == signal.SIGXCPU or (-status == signal.SIGKILL and self._cpu_at_end > self.quota.cpu_seconds):
            return Death(limit="cpu_seconds")
        return Death(signal=SIGNALS.get(-status, f"number {-status}"))

    def _look(self) -> None:
        """Kill all of it when a part was over: what is left of a program after that is of no use."""
        self._timer = self._zygote.loop.call_later(LOOK_SECONDS, self._look)
        if self._cgroup is not None:
            is_over = self._cgroup.was_over()
        else:
            processes = {self._pid, *tree.descendants(self._pid), *tree.descendants(self._init_pid)}
            most = self.quota.memory_bytes
            is_over = tree.most_bytes(processes) > most and tree.bytes_together(processes) > most
        if is_over:
            self._is_over_memory = True
            self.kill()

    def _die(self, death: Death) -> None:
        if self._death is not None:
            return
        self._death = death
        if self._timer is not None:
            self._timer.cancel()
        if self._on_death is not None:
            self._on_death(death)
        self._give_back()
        if not self._gone.done():
            self._gone.set_result(None)

    def _give_back(self) -> None:
        if self.gateway is not None:
            self.gateway.close()
        if self._cpu is not None:
            self._cpu.close()
        for fd in (self._init, self._guest):
            if fd >= 0:
                os.close(fd)
        self._init = self._guest = -1
        if self._slot is not None:
            self._zygote.release(self._slot)


def _close(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)


def _pid_of(pidfd: int) -> int:
    """The pid, as seen from here, of a process that knows itself by another one."""
    fd = os.open(f"/proc/self/fdinfo/{pidfd}", os.O_RDONLY | os.O_CLOEXEC)  # not open(), which costs more than the rest
    try:
        return int(os.read(fd, 1 << 12).partition(b"Pid:")[2].split(None, 1)[0])
    finally:
        os.close(fd)
