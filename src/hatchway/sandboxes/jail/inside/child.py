"""A child: takes every wall it can get around itself, says hello, and becomes the guest."""

from __future__ import annotations

import array
import gc
import importlib
import json
import os
import signal
import socket
import sys
import threading
from typing import Any

from . import kernel
from .seal import Seal

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


def run(launch: dict[str, Any], order: dict[str, Any], fds: list[int], seal: Seal) -> None:
    """Be the guest, or the command of the order. Never returns."""
    if launch["is_command"]:
        _run_command(order, fds, seal)
    _own_descriptors(os.open("/dev/null", os.O_RDONLY), *fds[1:], fds[0])
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=CHANNEL)
    try:
        given = seal.take(order)
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


def _run_command(order: dict[str, Any], fds: list[int], seal: Seal) -> None:
    """Become a program. The channel closes when it starts; before that it tells why it does not."""
    _own_descriptors(*fds[1:], fds[0])
    os.set_inheritable(CHANNEL, False)
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=CHANNEL)
    try:
        _say_hello(channel, seal.take(order))
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


def _forget_the_zygote() -> None:
    """What the interpreter's hooks do after a fork, as far as one thread needs it; a rehearsal draws another seed."""
    threading.main_thread()._set_native_id()  # pyright: ignore


def _own_descriptors(*wanted: int) -> None:
    """Standard input, output and error, then the channel."""
    for place, fd in enumerate(wanted):  # the zygote's own take the low numbers: none of these is among them
        os.dup2(fd, place)
    kernel.close_all_but({0, 1, 2, CHANNEL})
