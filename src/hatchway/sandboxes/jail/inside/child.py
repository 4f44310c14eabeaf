"""A child: takes every wall it can get around itself, says hello, and becomes the guest."""

from __future__ import annotations

import array
import gc
import importlib
import json
import os
import random
import socket
import sys
import threading
from typing import Any

from . import kernel, network, policy

SCRATCH = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC


CHANNEL = 3  # where every guest finds its channel, so that the interpreter can be made before the fork
WARM_UPS = 5  # the interpreter specialises code it has run a few times
_guest: Any = None


def prepare() -> None:
    """Make, in the zygote, the interpreter that every child will have."""
    global _guest
    pipe = importlib.import_module("_hatchway_guest.channel").PipeChannel(CHANNEL, CHANNEL)
    _guest = importlib.import_module("_hatchway_guest.interpreter").Interpreter(pipe)
    sys.argv[:] = [""]
    for _ in range(WARM_UPS):
        _guest.warm_up()


def run(launch: dict[str, Any], order: dict[str, Any], fds: list[int]) -> None:
    """Never returns."""
    _own_descriptors(*fds)
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=CHANNEL)
    try:
        given = _seal(launch, order)
        _forget_the_zygote()
        sys.path += [place for place, _ in launch["package_folders"]]  # only now: the walls stand
        _guest.warm_up()  # in the zygote for what the interpreter learns from it, here for the pages it writes to
        hello = b'{"sealed":true,"fds":["%s"]}\n' % '","'.join(given).encode()
        rights = array.array("i", given.values())
        channel.sendmsg([hello], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        for fd in rights:
            os.close(fd)
    except BaseException as e:
        channel.send(json.dumps({"sealed": False, "reason": f"{type(e).__name__}: {e}"}).encode() + b"\n")
        os._exit(1)
    try:
        channel.detach()
        gc.enable()
        _guest.serve()
    except BaseException as e:
        sys.excepthook(type(e), e, e.__traceback__)
    finally:
        os._exit(1)


def _seal(launch: dict[str, Any], order: dict[str, Any]) -> dict[str, int]:
    """Put the walls up, outermost last; what the host is to have is given back as descriptors by name."""
    _volunteer_for_oom()
    os.setsid()  # kill(0) would cross the pid namespace by the inherited process group
    _own_mounts(launch, order)
    given = {"init": os.pidfd_open(1), "guest": os.pidfd_open(os.getpid())}
    if launch["has_output"]:
        given["output"] = os.open("/output", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    if launch["proxy_port"]:
        given["listener"] = network.own_network(launch["proxy_port"])
    kernel.unshare(kernel.NEWUSER)  # RLIMIT_NPROC counts per user namespace; ours holds nobody else
    _rlimits(order)  # after it: what a namespace is made under bounds the sum of all its siblings
    kernel.drop_capabilities()
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # else /proc/self belongs to root
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    policy.restrict_paths(["/"], ["/tmp", *(["/output"] if launch["has_output"] else [])], launch["proxy_port"])
    policy.restrict_system_calls(order["has_cgroup"], bool(launch["proxy_port"]))
    return given


def _forget_the_zygote() -> None:
    """What the interpreter's hooks do after a fork, as far as one thread needs it."""
    random.seed()
    threading.main_thread()._set_native_id()  # pyright: ignore


def _volunteer_for_oom() -> None:
    """When the cgroup is out of memory the kernel must take us and not the zygote's copy that shares it."""
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)  # not open(): each page it touches is copied
    os.write(fd, b"1000")
    os.close(fd)


def _own_mounts(launch: dict[str, Any], order: dict[str, Any]) -> None:
    kernel.unshare(kernel.NEWNS | kernel.NEWCGROUP)
    kernel.mount("proc", "/proc", "proc", SCRATCH, "subset=pid")  # no /proc/sys, nor anything else machine-wide
    quota = f"mode=700,size={order['disk_bytes']},nr_inodes={order['disk_files']}"
    kernel.mount("tmpfs", "/tmp", "tmpfs", SCRATCH, quota)
    if launch["has_output"]:
        kernel.mount("tmpfs", "/output", "tmpfs", SCRATCH, quota)
    os.chdir("/tmp")


def _own_descriptors(channel: int, out: int, err: int) -> None:
    for fd, place in ((os.open("/dev/null", os.O_RDONLY), 0), (out, 1), (err, 2), (channel, CHANNEL)):
        os.dup2(fd, place)
    kernel.close_all_but({0, 1, 2, CHANNEL})


def _rlimits(order: dict[str, Any]) -> None:
    kernel.set_rlimits(order["rlimits"])
