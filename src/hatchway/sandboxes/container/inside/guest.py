"""Start in a container: the relay is the first process, its child becomes the guest."""

from __future__ import annotations

import gc
import importlib
import os
import sys

from . import relay

WARMED = (
    "ast", "asyncio", "base64", "collections", "concurrent.futures.thread", "contextlib", "copy", "dataclasses",
    "datetime", "decimal", "enum", "functools", "inspect", "io", "itertools", "json", "linecache", "math", "operator",
    "os", "pathlib", "random", "re", "resource", "string", "struct", "textwrap", "threading", "time", "traceback",
    "types", "typing", "uuid",
)  # fmt: skip
GUEST, JAIL = "_hatchway_guest", "_hatchway_jail"


def start() -> None:
    """Take stdin and stdout for the channel before any code of the action runs. Never returns."""
    for name in (*WARMED, *(f"{GUEST}.{name}" for name in ("channel", "interpreter", "loops"))):
        try:
            importlib.import_module(name)
        except ImportError:
            pass  # a Python built without it
    (from_host, to_guest), (channel, to_host), (stdout, out), (stderr, err) = (os.pipe() for _ in range(4))
    guest = os.fork()
    if guest == 0:
        _be_guest(from_host, to_host, out, err)
    relay.hide()
    for fd in (from_host, to_host, out, err):
        os.close(fd)
    relay.Relay(guest, to_guest, channel, stdout, stderr).run()


def _be_guest(from_host: int, to_host: int, out: int, err: int) -> None:
    try:
        os.setsid()
        _volunteer_for_oom()
        null = os.open(os.devnull, os.O_RDWR)
        for fd, place in ((null, 0), (out, 1), (err, 2)):
            os.dup2(fd, place)
        for name in os.listdir("/proc/self/fd"):
            if int(name) not in (0, 1, 2, from_host, to_host):
                _close(int(name))
        sys.argv = [""]
        sys.path[:] = [path for path in sys.path if path]  # not the working directory
        os.chdir("/tmp")
        _link_files()
        _forget_what_is_ours()
        _restrict_system_calls()
        channel = importlib.import_module(f"{GUEST}.channel").PipeChannel(from_host, to_host)
        interpreter = importlib.import_module(f"{GUEST}.interpreter").Interpreter(channel)
        interpreter.warm_up()
        gc.enable()
        interpreter.serve()
    except BaseException as e:
        sys.excepthook(type(e), e, e.__traceback__)
    finally:
        os._exit(70)


def _link_files() -> None:
    """`input/` and `output/` in the working directory, as in every other sandbox, where files are granted."""
    if os.path.ismount("/output"):
        for name in ("input", "output"):
            os.symlink(f"/{name}", name)


def _forget_what_is_ours() -> None:
    """The hash seed, and the names of proxies that were emptied so that the engine's client does not fill them."""
    os.environ.pop("PYTHONHASHSEED", None)
    for name in [name for name in os.environ if name.upper().endswith("_PROXY") and not os.environ[name]]:
        del os.environ[name]


def _restrict_system_calls() -> None:
    """The jail's list on top of the engine's, which is much longer; where no list is known, the engine's alone."""
    if importlib.import_module(f"{JAIL}.kernel").is_known_machine():
        policy = importlib.import_module(f"{JAIL}.policy")
        policy.restrict_system_calls(True)  # files in memory are counted by the container's cgroup


def _volunteer_for_oom() -> None:
    """When memory is out the kernel must take the code and not the relay that would tell of it."""
    try:
        with open("/proc/self/oom_score_adj", "w") as f:
            f.write("1000")
    except OSError:
        pass  # an engine that shows no /proc file of ours for writing


def _close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        pass  # the one the listing itself had
