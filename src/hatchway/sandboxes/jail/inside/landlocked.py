"""The spawner of the landlock tier: the one of the process sandbox, whose guests seal themselves before they serve.

`python -s -S landlocked.py DESCRIPTION SPAWNER FD GUEST`: the last three are what the plain spawner is started with.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys
import threading
import types
from collections.abc import Sequence
from typing import Any

SPAWNER = "_hatchway_spawner"
TIOCSCTTY = 0x540E


def main() -> None:
    """Become a spawner of sealed guests."""
    del sys.path[0]  # the folder of this file
    description = json.loads(sys.argv[1])
    for name, folders in {**description["packages"], SPAWNER: [os.path.dirname(sys.argv[2])]}.items():
        package = types.ModuleType(name)
        package.__path__ = folders
        sys.modules[name] = package
    policy: Any = importlib.import_module("_hatchway_jail.policy")
    attributes: Any = importlib.import_module("_hatchway_jail.attributes")
    kernel: Any = importlib.import_module("_hatchway_jail.kernel")
    description["has_uids"] = kernel.has_uids_to_give()
    has_deputy = not description["has_uids"] and not description["denied"] and attributes.notify.can_ask()
    description["attributes"] = _attributes(policy, attributes, description, has_deputy)
    policy.system_calls(
        False, False, description["is_command"], True, description["attributes"]
    )  # once, for all guests
    if description["denied"]:
        importlib.import_module("_hatchway_jail.warden")

    for name in ("granted", "writable"):
        description[name] = [(path, _identity(os.stat(path))) for path in description[name]]

    def seal_guest(request: dict[str, Any], fds: Sequence[int], deputy: int) -> None:
        seal(description, request, fds, deputy)

    def deputy_of(request: dict[str, Any], guest: socket.socket) -> Any:
        listener = attributes.notify.taken(guest)
        return None if listener is None else attributes.Attributes(listener, _places(description, request["cwd"]))

    importlib.import_module(SPAWNER + ".spawner").main(
        int(sys.argv[3]), sys.argv[4], seal_guest, deputy_of if has_deputy else None
    )


def _attributes(policy: Any, attributes: Any, description: dict[str, Any], has_deputy: bool) -> str:
    """The calls that change what a file is like: as they are where the code has a uid of its own, else by a deputy."""
    if description["denied"] or has_deputy:
        return attributes.NAMES
    return policy.EVERY_ATTRIBUTE if description["has_uids"] else ""


def _places(description: dict[str, Any], folder: str) -> list[tuple[str, int]]:
    """Where the code may write, as paths and handles."""
    own = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    return [(os.readlink(_by_handle(fd)), fd) for fd in (own, *_handles(description["writable"]))]


def seal(description: dict[str, Any], request: dict[str, Any], kept: Sequence[int], deputy: int) -> None:
    """Give up all but the interpreter's files, the own folder, what is granted, and the channel."""
    kernel, policy = (importlib.import_module("_hatchway_jail." + name) for name in ("kernel", "policy"))
    kernel.close_all_but({0, 1, 2, *kept, *([deputy] if deputy >= 0 else [])})
    sys.path[:] = description["sys_path"]
    sys.dont_write_bytecode = True  # its folder is the code's
    folder = os.getcwd()
    limits = request["quota"]["rlimits"]
    if description["has_uids"]:
        _become_nobody_else(kernel, [folder, *([folder + "/output"] if description["has_output"] else [])])
    else:
        tasks = _tasks_of_user()
        limits["RLIMIT_NPROC"] = [tasks + most for most in limits["RLIMIT_NPROC"]]  # it counts every task of the user
        kernel.drop_capabilities()
    kernel.set_rlimits(limits)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    granted, writable = (_handles(description[name]) for name in ("granted", "writable"))
    policy.restrict_paths(
        [*description["readable"], *map(_by_handle, granted)],
        [folder, *map(_by_handle, writable)],
        listable=description["listable"],
    )
    for fd in (*granted, *writable):
        os.close(fd)
    if description["workdir"]:
        os.chdir(description["workdir"])
    if description["denied"]:
        warden: Any = importlib.import_module("_hatchway_jail.warden")
        warden.enter(
            description["denied"],
            [folder, *description["denied"]["roots"]],
            [folder, *(path for path, _ in description["writable"])],
        )
        threading.main_thread()._set_native_id()  # pyright: ignore
        os.setsid()  # the warden leads the old session
    if request.get("has_tty"):
        importlib.import_module("fcntl").ioctl(0, TIOCSCTTY, 0)
    if deputy >= 0:
        notify: Any = importlib.import_module("_hatchway_jail.notify")
        notify.hand_over(deputy, notify.ask_for(description["attributes"]))
    policy.restrict_system_calls(False, False, description["is_command"], True, description["attributes"])
    sys.path += [*description["package_path"], *description["import_path"]]  # only now: the walls stand


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _handles(granted: list[tuple[str, tuple[int, int]]]) -> list[int]:
    """What was granted, where it still is what it was: nothing that took its place was ever granted."""
    handles: list[int] = []
    for path, identity in granted:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # it is gone
        if _identity(os.fstat(fd)) == identity:
            handles.append(fd)
        else:
            os.close(fd)
    return handles


def _by_handle(fd: int) -> str:
    return f"/proc/self/fd/{fd}"


def _become_nobody_else(kernel: Any, folders: list[str]) -> None:
    """A uid that no other process and no file has."""
    uid = kernel.UID_RANGE + os.getpid()
    for folder in folders:
        os.chown(folder, uid, uid)
    os.setgroups([])
    kernel.drop_bounds()
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    kernel.drop_capabilities()


def _tasks_of_user() -> int:
    uid, tasks = os.getuid(), 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.stat("/proc/" + name).st_uid == uid:
                    tasks += len(os.listdir(f"/proc/{name}/task"))
            except OSError:
                pass  # it has just ended, or is not ours to see
    return tasks


if __name__ == "__main__":
    main()
