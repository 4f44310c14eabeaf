"""A child: takes every wall it can get around itself, says hello, and becomes the guest."""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
import threading
from typing import Any

from .seal import CHANNEL, CODE_PID, STAGE, Seal

WARM_UPS = 16  # the interpreter specialises code it has run a few times
_guest: Any = None
_stage: Any = None


def prepare() -> None:
    """Make, in the zygote, the interpreter that every child will have."""
    global _guest, _stage
    pipe = importlib.import_module("_hatchway_guest.channel").PipeChannel(CHANNEL, CHANNEL)
    interpreter = importlib.import_module("_hatchway_guest.interpreter")
    _guest, _stage = interpreter.Interpreter(pipe), interpreter.Stage(*STAGE)
    sys.argv[:] = [""]
    threading.main_thread()._native_id = CODE_PID  # pyright: ignore  # the interpreter's hooks after a fork are left out
    _guest.take_over()
    sys._clear_type_cache()  # pyright: ignore  # what imports left in it lies on pages that nobody else needs
    pipe_fds = os.pipe()
    for fd, place in zip(pipe_fds, STAGE):  # noqa: B905  # not before Python 3.10
        os.dup2(fd, place)
        os.close(fd)
    _guest.warm_up_loop(WARM_UPS)
    _guest.warm_up(WARM_UPS, _stage)
    for place in STAGE:
        os.close(place)


def run(launch: dict[str, Any], order: dict[str, Any], seal: Seal) -> None:
    """Be the guest, or the command of the order. Never returns."""
    if launch["is_command"]:
        _run_command(order, seal)
    try:
        seal.take()
        if launch["denied"]:
            threading.main_thread()._set_native_id()  # pyright: ignore
        if launch["package_folders"]:
            sys.path += [place for place, _ in launch["package_folders"]]  # only now: the walls stand
        sys.path += launch["import_path"]
        _guest.warm_up(1, _stage)  # in the zygote for what the interpreter learns, here for the pages it writes to
        seal.say_hello()
    except BaseException as e:
        _say_unsealed(f"{type(e).__name__}: {e}")
        os._exit(1)
    try:
        gc.enable()
        _guest.serve()
    except BaseException as e:
        sys.excepthook(type(e), e, e.__traceback__)
    finally:
        os._exit(1)


def _run_command(order: dict[str, Any], seal: Seal) -> None:
    """Become a program. The channel closes when it starts; before that it tells why it does not."""
    try:
        seal.take()
        seal.say_hello()
        for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores some, and exec keeps that
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(order["argv"][0], order["argv"], order["environment"])
    except BaseException as e:
        _say_unsealed(str(e), getattr(e, "errno", 0))
    finally:
        os._exit(127)


def _say_unsealed(reason: str, number: int = 0) -> None:
    os.write(CHANNEL, json.dumps({"sealed": False, "reason": reason, "errno": number}).encode() + b"\n")
