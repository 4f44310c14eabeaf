"""The walls of a child: thought out in the zygote, taken by the child itself, outermost last."""

from __future__ import annotations

import fcntl
import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any

from . import kernel, network, policy, root
from .steps import Steps

SCRATCH = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
EXECUTABLE = kernel.MS_NOSUID | kernel.MS_NODEV
TIOCSCTTY = 0x540E
CHANNEL = 3  # where every guest finds its channel, so that the interpreter can be made before the fork
STAGE = 62, 63  # and the ends of the pipe it rehearses with, until it says hello
INIT_PID, CODE_PID, CODE_PID_BELOW_WARDEN = 1, 2, 3  # in its own pid namespace
_MOST = 0xFFFFFFFF


class Seal:
    """The walls of every child of one launch description and one quota.

    Args:
        launch: The description.
        order: A child's, of which only the quota is read here.
    """

    def __init__(self, launch: dict[str, Any], order: dict[str, Any]) -> None:
        self._launch = launch
        self._quota = quota_of(order)
        self._order = order
        self._given: dict[str, int] = {}
        self._calls = first = Steps(CHANNEL + 1)
        self._stages: list[Callable[[], None]] = [first.take]
        self._descriptors, self._first = self._own_descriptors(), first
        self._volunteer_for_oom()
        first.call("setsid", gives=CODE_PID)  # kill(0) would cross the pid namespace by the inherited process group
        self._own_mounts(f"mode=700,size={order['disk_bytes']},nr_inodes={order['disk_files']}")
        self._workdir = self._calls.call("chdir", _text(launch["workdir"])), self._calls
        if launch["has_output"]:
            self._given["output"] = self._calls.open("/output", os.O_RDONLY | os.O_DIRECTORY)
        if launch["proxy_port"]:
            self._then(self._own_network, opens="listener")
        self._no_rights(order)
        if launch["denied"]:
            self._then(self._go_below_warden)
        if launch["is_command"]:
            self._then(self._take_terminal)
        self._last_walls(order)
        self._hello = self._said_hello()

    def fits(self, order: dict[str, Any]) -> bool:
        """Whether these are the walls of that child too."""
        return quota_of(order) == self._quota

    def aim(self, order: dict[str, Any], fds: Sequence[int]) -> None:
        """The next child is one of this order, with these descriptors: its channel, then those it is to have."""
        self._order = order
        wanted = (*fds[1:], fds[0])
        for place, row in enumerate(self._descriptors):
            self._first.set(row, 0, wanted[place])
        if self._launch["is_command"]:
            row, calls = self._workdir
            calls.set(row, 0, _text(order.get("workdir") or self._launch["workdir"]))

    def take(self) -> None:
        """Put the walls up.

        Raises:
            OSError: The system refuses one of them.
        """
        for stage in self._stages:
            stage()

    def say_hello(self) -> None:
        """The walls stand: the host is told so, and given what is its own."""
        self._hello.take()

    def _then(self, stage: Callable[[], None], opens: str = "") -> None:
        """Something that needs Python, with calls before and after it; it may open a descriptor for the host."""
        free = self._calls.free
        if opens:
            self._given[opens] = free
            free += 1
        self._calls = Steps(free)
        self._stages += [stage, self._calls.take]

    def _own_descriptors(self) -> list[int]:
        """Standard input, output and error, then the channel, and no other; the rows that say which they were."""
        first = self._calls
        is_command = self._launch["is_command"]
        rows = [first.call("dup3", 0, place, 0, gives=place) for place in range(0 if is_command else 1, CHANNEL)]
        rows.append(first.call("dup3", 0, CHANNEL, os.O_CLOEXEC if is_command else 0, gives=CHANNEL))
        first.call("close_range", CHANNEL + 1, _MOST, 0)
        if not is_command:
            null = first.open("/dev/null", os.O_RDONLY)
            first.call("dup3", null, 0, 0)
            first.close(null)
            self._set_stage()
        return rows

    def _set_stage(self) -> None:
        calls, ends = self._calls, (self._calls.free, self._calls.free + 1)
        calls.call("pipe2", bytes(8), os.O_CLOEXEC)
        for fd, place in zip(ends, STAGE):  # noqa: B905  # not before Python 3.10
            calls.call("dup3", fd, place, os.O_CLOEXEC, gives=place)
            calls.call("close", fd)

    def _volunteer_for_oom(self) -> None:
        """When the cgroup is out of memory the kernel must take us and not the zygote's copy that shares it."""
        calls = self._calls
        calls.prctl(kernel.PR_SET_DUMPABLE, 1)
        fd = calls.open("/proc/self/oom_score_adj", os.O_WRONLY)
        calls.call("write", fd, b"1000", 4, gives=4)
        calls.close(fd)

    def _own_mounts(self, space: str) -> None:
        launch = self._launch
        self._calls.call("unshare", kernel.NEWNS | kernel.NEWCGROUP)
        self._calls.mount("proc", "/proc", SCRATCH, "subset=pid")  # no /proc/sys, nor anything else machine-wide
        scratch = "tmpfs", "/tmp", EXECUTABLE if launch["is_command"] else SCRATCH, space
        if launch["in_scratch"]:
            self._then(lambda: self._keep_in_scratch(*scratch))
        else:
            self._calls.mount(*scratch)
        if launch["has_output"]:
            self._calls.mount("tmpfs", "/output", SCRATCH, space)
            for name in ("input", "output"):
                self._calls.call("symlinkat", _text(f"/{name}"), kernel.AT_FDCWD, _text(f"/tmp/{name}"))

    def _keep_in_scratch(self, kind: str, target: str, flags: int, data: str) -> None:
        """What is shown below /tmp would lie under the new one."""
        kept = [(path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in self._launch["in_scratch"]]
        kernel.mount(kind, target, kind, flags, data)
        for path, fd in kept:
            root.make_place(f"/proc/self/fd/{fd}", path)
            kernel.bind(f"/proc/self/fd/{fd}", path)
            os.close(fd)

    def _own_network(self) -> None:
        listener = network.own_network(self._launch["proxy_port"])
        assert listener == self._given["listener"], "the lowest descriptor that was free"

    def _no_rights(self, order: dict[str, Any]) -> None:
        calls, launch = self._calls, self._launch
        # RLIMIT_NPROC counts per user namespace; the new one holds nobody else. The limits come after it: what a
        # namespace is made under bounds the sum of all its siblings.
        calls.call("unshare", kernel.NEWUSER)
        calls.rlimits(order["rlimits"])
        calls.no_capabilities()
        calls.prctl(kernel.PR_SET_DUMPABLE, 1)  # else /proc/self belongs to root
        calls.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        restriction = policy.path_restriction(["/"], _writable(launch), launch["proxy_port"])
        if restriction is not None:
            calls.paths(restriction)

    def _go_below_warden(self) -> None:
        warden: Any = importlib.import_module("_hatchway_jail.warden")
        warden.enter(self._launch["denied"], self._launch["denied"]["roots"], _writable(self._launch))
        os.setsid()  # the warden leads the old session

    def _take_terminal(self) -> None:
        if self._order.get("has_tty"):
            fcntl.ioctl(0, TIOCSCTTY, 0)

    def _last_walls(self, order: dict[str, Any]) -> None:
        calls, launch = self._calls, self._launch
        self._given["init"] = calls.opened("pidfd_open", INIT_PID, 0)
        code = CODE_PID_BELOW_WARDEN if launch["denied"] else CODE_PID
        self._given["guest"] = calls.opened("pidfd_open", code, 0)
        asked = {"attributes": importlib.import_module("_hatchway_jail.attributes").NAMES} if launch["denied"] else {}
        calls.system_calls(
            policy.system_calls(order["has_cgroup"], bool(launch["proxy_port"]), launch["is_command"], **asked)
        )

    def _said_hello(self) -> Steps:
        hello = Steps(self._calls.free)
        told = b'{"sealed":true,"fds":["%s"]}\n' % '","'.join(self._given).encode()
        hello.send(CHANNEL, told, list(self._given.values()))
        for fd in sorted(self._given.values(), reverse=True):
            hello.close(fd)
        hello.call("close_range", *STAGE, 0)
        return hello


def quota_of(order: dict[str, Any]) -> tuple[Any, ...]:
    """What of an order the walls depend on."""
    return order["disk_bytes"], order["disk_files"], order["rlimits"], order["has_cgroup"]


def _writable(launch: dict[str, Any]) -> list[str]:
    return ["/tmp", *(["/output"] if launch["has_output"] else []), *launch["writable"]]


def _text(path: str) -> bytes:
    return os.fsencode(path) + b"\0"
