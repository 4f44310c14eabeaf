"""A child: takes every wall it can get around itself, says hello, and becomes the guest."""

from __future__ import annotations

import _socket
import array
import gc
import importlib
import json
import os
import signal
import sys
import threading
from typing import Any

from .seal import CHANNEL, Seal

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
    _own_descriptors(seal, os.open("/dev/null", os.O_RDONLY), *fds[1:], fds[0])
    channel = _channel()
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
    _own_descriptors(seal, *fds[1:], fds[0])
    os.set_inheritable(CHANNEL, False)
    channel = _channel()
    try:
        _say_hello(channel, seal.take(order))
        for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores some, and exec keeps that
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(order["argv"][0], order["argv"], order["environment"])
    except BaseException as e:
        channel.send(json.dumps({"sealed": False, "reason": f"{e}", "errno": getattr(e, "errno", 0)}).encode() + b"\n")
    finally:
        os._exit(127)


def _say_hello(channel: _socket.socket, given: dict[str, int]) -> None:
    """The walls stand: the host is given what is its own."""
    hello = b'{"sealed":true,"fds":["%s"]}\n' % '","'.join(given).encode()
    rights = array.array("i", given.values())
    channel.sendmsg([hello], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
    for fd in rights:
        os.close(fd)


def _forget_the_zygote() -> None:
    """What the interpreter's hooks do after a fork, as far as one thread needs it; a rehearsal draws another seed."""
    threading.main_thread()._set_native_id()  # pyright: ignore


def _channel() -> _socket.socket:
    return _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, CHANNEL)  # without the layer written in Python


def _own_descriptors(seal: Seal, *wanted: int) -> None:
    """Standard input, output and error, then the channel."""
    for place, fd in enumerate(wanted):  # the zygote's own take the low numbers: none of these is among them
        os.dup2(fd, place)
    seal.close_others()
