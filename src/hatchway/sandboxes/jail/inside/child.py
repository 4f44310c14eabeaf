"""A child: takes every wall it can get around itself, says hello, and becomes the guest."""

from __future__ import annotations

import array
import gc
import importlib
import json
import os
import random
import signal
import socket
import sys
import threading
from typing import Any

from . import kernel, network, policy, root

SCRATCH = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
TIOCSCTTY = 0x540E
EXECUTABLE = kernel.MS_NOSUID | kernel.MS_NODEV


CHANNEL = 3  # where every guest finds its channel, so that the interpreter can be made before the fork
WARM_UPS = 16  # the interpreter specialises code it has run a few times
_guest: Any = None


def prepare() -> None:
    """Make, in the zygote, the interpreter that every child will have."""
    global _guest
    pipe = importlib.import_module("_hatchway_guest.channel").PipeChannel(CHANNEL, CHANNEL)
    _guest = importlib.import_module("_hatchway_guest.interpreter").Interpreter(pipe)
    sys.argv[:] = [""]
    _guest.warm_up(WARM_UPS)


def run(launch: dict[str, Any], order: dict[str, Any], fds: list[int]) -> None:
    """Be the guest, or the command of the order. Never returns."""
    if launch["is_command"]:
        _run_command(launch, order, fds)
    _own_descriptors(os.open("/dev/null", os.O_RDONLY), *fds[1:], fds[0])
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=CHANNEL)
    try:
        given = seal(launch, order)
        _forget_the_zygote()
        sys.path += [place for place, _ in launch["package_folders"]]  # only now: the walls stand
        _guest.warm_up()  # in the zygote for what the interpreter learns from it, here for the pages it writes to
        _say_hello(channel, given)
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


def _run_command(launch: dict[str, Any], order: dict[str, Any], fds: list[int]) -> None:
    """Become a program. The channel closes when it starts; before that it tells why it does not."""
    _own_descriptors(*fds[1:], fds[0])
    os.set_inheritable(CHANNEL, False)
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=CHANNEL)
    try:
        _say_hello(channel, seal(launch, order))
        for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores some, and exec keeps that
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(order["argv"][0], order["argv"], order["environment"])
    except BaseException as e:
        channel.send(json.dumps({"sealed": False, "reason": f"{e}", "errno": getattr(e, "errno", 0)}).encode() + b"\n")
    finally:
        os._exit(127)


def _say_hello(channel: socket.socket, given: dict[str, int]) -> None:
    """The walls stand: the host is given what is its own."""
    hello = b'{"sealed":true,"fds":["%s"]}\n' % '","'.join(given).encode()
    rights = array.array("i", given.values())
    channel.sendmsg([hello], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    for fd in rights:
        os.close(fd)


def seal(launch: dict[str, Any], order: dict[str, Any]) -> dict[str, int]:
    """Put the walls up, outermost last; what the host is to have is given back as descriptors by name."""
    _volunteer_for_oom()
    os.setsid()  # kill(0) would cross the pid namespace by the inherited process group
    _own_mounts(launch, order)
    given: dict[str, int] = {}
    if launch["has_output"]:
        given["output"] = os.open("/output", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    if launch["proxy_port"]:
        given["listener"] = network.own_network(launch["proxy_port"])
    kernel.unshare(kernel.NEWUSER)  # RLIMIT_NPROC counts per user namespace; ours holds nobody else
    _rlimits(order)  # after it: what a namespace is made under bounds the sum of all its siblings
    kernel.drop_capabilities()
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # else /proc/self belongs to root
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    writable = ["/tmp", *(["/output"] if launch["has_output"] else []), *launch["writable"]]
    policy.restrict_paths(["/"], writable, launch["proxy_port"])
    if launch["denied"]:
        warden: Any = importlib.import_module("_hatchway_jail.warden")
        warden.enter(launch["denied"], launch["denied"]["roots"])
        os.setsid()  # the warden leads the old session
    given.update(init=os.pidfd_open(1), guest=os.pidfd_open(os.getpid()))
    if order.get("has_tty"):
        fcntl: Any = importlib.import_module("fcntl")
        fcntl.ioctl(0, TIOCSCTTY, 0)
    policy.restrict_system_calls(order["has_cgroup"], bool(launch["proxy_port"]), launch["is_command"])
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
    kept = [(path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in launch["in_scratch"]]
    kernel.mount("tmpfs", "/tmp", "tmpfs", SCRATCH if not launch["is_command"] else EXECUTABLE, quota)
    for path, fd in kept:  # what is shown below /tmp lies under the new one
        root.make_place(f"/proc/self/fd/{fd}", path)
        kernel.bind(f"/proc/self/fd/{fd}", path)
        os.close(fd)
    if launch["has_output"]:
        kernel.mount("tmpfs", "/output", "tmpfs", SCRATCH, quota)
        os.symlink("/input", "/tmp/input")
        os.symlink("/output", "/tmp/output")
    os.chdir(order.get("workdir") or launch["workdir"])


def _own_descriptors(*wanted: int) -> None:
    """Standard input, output and error, then the channel."""
    for place, fd in enumerate(wanted):  # the zygote's own take the low numbers: none of these is among them
        os.dup2(fd, place)
    kernel.close_all_but({0, 1, 2, CHANNEL})


def _rlimits(order: dict[str, Any]) -> None:
    kernel.set_rlimits(order["rlimits"])
