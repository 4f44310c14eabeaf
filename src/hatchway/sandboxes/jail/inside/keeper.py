"""The keeper: started by the host with nothing of it, starts the zygote and outlives it by a moment to tidy up.

`python -s -S keeper.py FD`: FD is the control socket, whose first message is the launch description.
It dies with the host whatever kills that: it polls a pidfd of it. The zygote dies with the keeper, and with the
zygote, pid 1 of its pid namespace, everything inside.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import types
from typing import Any


def main() -> None:
    """Run until the zygote or the host is gone."""
    gc.disable()  # imports make no garbage worth a search; the zygote looks once
    with socket.socket(fileno=int(sys.argv[1])) as given:
        control = given.dup()  # a low number: the host's own may be one that the zygote rehearses on
    launch = json.loads(control.recv(1 << 20))
    try:
        _keep(launch, control)
    finally:
        _remove_cgroups(launch["cgroups"])


def _keep(launch: dict[str, Any], control: socket.socket) -> None:
    host = os.pidfd_open(launch["host"])
    if os.getppid() != launch["host"]:
        sys.exit("the host is already gone")
    _load(launch)
    kernel, zygote = (importlib.import_module(f"_hatchway_jail.{name}") for name in ("kernel", "zygote"))
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    zygote_pid = zygote.start(launch, control, kernel.UID_RANGE + os.getpid())
    control.close()  # the host must see the end of file when the zygote dies
    sys.exit(zygote.shell_code(_outlive(zygote_pid, host)))


def _load(launch: dict[str, Any]) -> None:
    """Make packages of the folders that hold our files: nothing of the host's import path is in reach."""
    for name, folders in launch["packages"].items():
        package = types.ModuleType(name)
        package.__path__ = folders
        sys.modules[name] = package


def _outlive(zygote_pid: int, host: int) -> int:
    """Wait until nothing is left; the wait status of the zygote."""
    child = os.pidfd_open(zygote_pid)
    waiting = select.poll()
    waiting.register(child, select.POLLIN)
    waiting.register(host, select.POLLIN)
    if all(fd != child for fd, _ in waiting.poll()):
        signal.pidfd_send_signal(child, signal.SIGKILL)
    ended = 0
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return ended
        if pid == zygote_pid:
            ended = status


def _remove_cgroups(folders: list[str]) -> None:
    for folder in folders:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for path in [os.path.join(folder, name) for name in names] + [folder]:
            if os.path.isdir(path):
                try:
                    os.rmdir(path)
                except OSError:
                    pass  # still in use by the host, which removes it


if __name__ == "__main__":
    main()
