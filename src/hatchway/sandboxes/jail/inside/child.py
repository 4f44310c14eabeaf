"""A child: takes every wall it can get around itself, says hello, and becomes the guest."""

from __future__ import annotations

import array
import importlib
import json
import os
import resource
import signal
import socket
import sys
from typing import Any

from . import kernel, policy

SCRATCH = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC


def run(launch: dict[str, Any], order: dict[str, Any], fds: list[int]) -> None:
    """Never returns."""
    channel = socket.socket(fileno=fds[0])
    try:
        given = _seal(launch, order, fds)
        warm_up()
        channel.sendmsg([b'{"sealed":true}\n'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", given))])
        for fd in given:
            os.close(fd)
    except BaseException as e:
        channel.send(json.dumps({"sealed": False, "reason": f"{type(e).__name__}: {e}"}).encode() + b"\n")
        os._exit(1)
    try:
        _become_guest(channel.detach())
    except BaseException as e:
        sys.excepthook(type(e), e, e.__traceback__)
    finally:
        os._exit(1)


def _seal(launch: dict[str, Any], order: dict[str, Any], fds: list[int]) -> list[int]:
    """Put the walls up, outermost last; what the host is to have is given back as descriptors."""
    channel, out, err = fds
    _volunteer_for_oom()
    os.setsid()  # kill(0) would cross the pid namespace by the inherited process group
    _own_mounts(launch, order)
    given = [os.pidfd_open(1), os.pidfd_open(os.getpid())]
    if launch["has_output"]:
        given.append(os.open("/output", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    _own_descriptors({channel, *given}, out, err)
    kernel.unshare(kernel.NEWUSER)  # RLIMIT_NPROC counts per user namespace; ours holds nobody else
    _rlimits(order)  # after it: what a namespace is made under bounds the sum of all its siblings
    kernel.drop_capabilities()
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # else /proc/self belongs to root
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    policy.restrict_paths(["/"], ["/tmp", *(["/output"] if launch["has_output"] else [])])
    policy.restrict_system_calls(order["has_cgroup"])
    return given


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


def _own_descriptors(kept: set[int], out: int, err: int) -> None:
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    kernel.close_all_but({0, 1, 2, *kept})


def _rlimits(order: dict[str, Any]) -> None:
    for name, value in order["rlimits"].items():
        which = getattr(resource, name)
        hard = resource.getrlimit(which)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def warm_up() -> None:
    """Walk the path of an action. In the zygote: what the interpreter learns from it, every child knows. In a child:
    the pages it writes to are then its own, and not copied while somebody waits."""
    action, codec = (importlib.import_module(f"_hatchway_guest.{name}") for name in ("action", "codec"))
    message = codec.loads(codec.dumps({"type": "execute", "code": "1 + 1", "functions": [], "inputs": {}}))
    action.Action(message["code"], "<action>").run({}, None)


def _become_guest(channel: int) -> None:
    sys.argv[:] = [""]
    pipe = importlib.import_module("_hatchway_guest.channel").PipeChannel(channel, channel)
    importlib.import_module("_hatchway_guest.interpreter").Interpreter(pipe).serve()
