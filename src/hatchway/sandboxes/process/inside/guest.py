"""The last steps of a forked process before it is a guest."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from . import kernel

WARMED = (
    "asyncio", "base64", "collections", "concurrent.futures.thread", "contextlib", "copy", "dataclasses", "datetime",
    "decimal", "enum", "functools", "inspect", "io", "itertools", "json", "linecache", "math", "operator", "random",
    "re", "resource", "string", "textwrap", "threading", "time", "traceback", "types", "typing", "uuid",
)  # fmt: skip
"""Imported once in the spawner, so that every guest has them at once."""
GUEST = "_hatchway_guest"


def warm_up(folder: str) -> None:
    """Load the guest's files and what most actions import."""
    importlib.import_module("runpy").run_path(os.path.join(folder, "__main__.py"))["load"]()
    for name in (*WARMED, f"{GUEST}.channel", f"{GUEST}.interpreter", f"{GUEST}.loops"):
        try:
            importlib.import_module(name)
        except ImportError:
            pass  # a Python built without it


Seal = Callable[[dict[str, Any], Sequence[int], int], None]
"""`seal(request, fds, deputy)`: put walls around a settled process before it serves; the descriptors stay open.

The last one is the way to whoever does in the supervisor what the walls keep it from, and stays open in there alone.
"""


def be_guest(request: dict[str, Any], fds: Sequence[int], deputy: int, supervisor: int, seal: Seal | None) -> None:
    """Put everything in its place and serve the host, or become the program it asks for. Never returns."""
    status = 70
    try:
        os.setsid()
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == supervisor:  # otherwise it died before the line above
            _volunteer_for_oom()
            _settle(request, fds, deputy)
            if seal is not None:
                seal(request, fds[:2], deputy)
            if "argv" in request:
                _become(request["argv"], fds[1])
            else:
                _serve(*fds[:2])
    except BaseException as e:
        sys.excepthook(type(e), e, e.__traceback__)
    finally:
        os._exit(status)


def _volunteer_for_oom() -> None:
    """When the machine is out of memory the kernel must take the code, and not the host or a supervisor."""
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(fd, b"1000")
        os.close(fd)
    except OSError:
        pass  # a system that shows no /proc


def _settle(request: dict[str, Any], fds: Sequence[int], deputy: int) -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    read_fd, write_fd, stdout, stderr = fds
    stdin = read_fd if "argv" in request else os.open(os.devnull, os.O_RDONLY)
    for fd, place in ((stdin, 0), (stdout, 1), (stderr, 2)):
        os.dup2(fd, place, inheritable=True)
    kernel.close_all_but(0, 1, 2, write_fd, deputy, *(() if "argv" in request else (read_fd,)))
    os.chdir(request.get("workdir") or request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = [""]
    sys.path.insert(0, request["cwd"])
    sys.path += [*request["packages"], *([request["workdir"]] if request.get("workdir") else ())]


def _become(argv: list[str], channel: int) -> None:
    """Become a program; the channel closes when it starts, and tells why if it does not."""
    os.set_inheritable(channel, False)
    for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(argv[0], argv, os.environ)
    except OSError as e:
        os.write(channel, b'{"errno": %d}' % (e.errno or 0))


def _serve(read_fd: int, write_fd: int) -> None:
    channel = importlib.import_module(f"{GUEST}.channel").PipeChannel(read_fd, write_fd)
    interpreter = importlib.import_module(f"{GUEST}.interpreter").Interpreter(channel)
    interpreter.warm_up()
    gc.enable()
    interpreter.serve()
