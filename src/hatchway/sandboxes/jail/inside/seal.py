"""The walls of a child: thought out in the zygote, taken by the child itself, outermost last."""

from __future__ import annotations

import importlib
import os
from typing import Any

from . import kernel, network, policy, root
from .steps import Steps

SCRATCH = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
EXECUTABLE = kernel.MS_NOSUID | kernel.MS_NODEV
TIOCSCTTY = 0x540E
CHANNEL = 3  # where every guest finds its channel, so that the interpreter can be made before the fork


class Seal:
    """The walls of every child of one launch description and one quota.

    Args:
        launch: The description.
        order: A child's, of which only the quota is read here.
    """

    def __init__(self, launch: dict[str, Any], order: dict[str, Any]) -> None:
        self._launch = launch
        self._quota = quota_of(order)
        space = f"mode=700,size={order['disk_bytes']},nr_inodes={order['disk_files']}"
        self._close = Steps().close_from(CHANNEL + 1)
        self._dumpable = Steps().prctl(kernel.PR_SET_DUMPABLE, 1)
        self._namespaces = Steps().unshare(kernel.NEWNS | kernel.NEWCGROUP)
        # no /proc/sys, nor anything else machine-wide
        self._namespaces.mount("proc", "/proc", SCRATCH, "subset=pid")
        self._scratch = Steps().mount("tmpfs", "/tmp", EXECUTABLE if launch["is_command"] else SCRATCH, space)
        self._output = Steps().mount("tmpfs", "/output", SCRATCH, space)
        # RLIMIT_NPROC counts per user namespace; the new one holds nobody else. The limits come after it: what a
        # namespace is made under bounds the sum of all its siblings.
        self._rights = Steps().unshare(kernel.NEWUSER).rlimits(order["rlimits"]).no_capabilities()
        self._rights.prctl(kernel.PR_SET_DUMPABLE, 1)  # else /proc/self belongs to root
        self._rights.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        writable = ["/tmp", *(["/output"] if launch["has_output"] else []), *launch["writable"]]
        self._paths = policy.path_restriction(["/"], writable, launch["proxy_port"])
        calls = policy.system_calls(order["has_cgroup"], bool(launch["proxy_port"]), launch["is_command"])
        self._system_calls = Steps().system_calls(calls)

    def close_others(self) -> None:
        """Give up every descriptor but the standard ones and the channel."""
        self._close.take()

    def fits(self, order: dict[str, Any]) -> bool:
        """Whether these are the walls of that child too."""
        return quota_of(order) == self._quota

    def take(self, order: dict[str, Any]) -> dict[str, int]:
        """Put the walls up; what the host is to have is given back as descriptors by name."""
        launch = self._launch
        self._volunteer_for_oom()
        os.setsid()  # kill(0) would cross the pid namespace by the inherited process group
        self._own_mounts(order)
        given: dict[str, int] = {}
        if launch["has_output"]:
            given["output"] = os.open("/output", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        if launch["proxy_port"]:
            given["listener"] = network.own_network(launch["proxy_port"])
        self._rights.take()
        if self._paths is not None:
            self._paths.take()
        if launch["denied"]:
            warden: Any = importlib.import_module("_hatchway_jail.warden")
            warden.enter(launch["denied"], launch["denied"]["roots"])
            os.setsid()  # the warden leads the old session
        given.update(init=os.pidfd_open(1), guest=os.pidfd_open(os.getpid()))
        if order.get("has_tty"):
            fcntl: Any = importlib.import_module("fcntl")
            fcntl.ioctl(0, TIOCSCTTY, 0)
        self._system_calls.take()
        return given

    def _volunteer_for_oom(self) -> None:
        """When the cgroup is out of memory the kernel must take us and not the zygote's copy that shares it."""
        self._dumpable.take()
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)  # not open(): each page it touches is copied
        os.write(fd, b"1000")
        os.close(fd)

    def _own_mounts(self, order: dict[str, Any]) -> None:
        launch = self._launch
        self._namespaces.take()
        kept = [(path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in launch["in_scratch"]]
        self._scratch.take()
        for path, fd in kept:  # what is shown below /tmp lies under the new one
            root.make_place(f"/proc/self/fd/{fd}", path)
            kernel.bind(f"/proc/self/fd/{fd}", path)
            os.close(fd)
        if launch["has_output"]:
            self._output.take()
            os.symlink("/input", "/tmp/input")
            os.symlink("/output", "/tmp/output")
        os.chdir(order.get("workdir") or launch["workdir"])


def quota_of(order: dict[str, Any]) -> tuple[Any, ...]:
    """What of an order the walls depend on."""
    return order["disk_bytes"], order["disk_files"], order["rlimits"], order["has_cgroup"]
