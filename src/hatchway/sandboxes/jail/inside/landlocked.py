"""The spawner of the landlock tier: the one of the process sandbox, whose guests seal themselves before they serve.

`python -I -S landlocked.py DESCRIPTION SPAWNER FD GUEST`: the last three are what the plain spawner is started with.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import types
from typing import Any

SPAWNER = "_hatchway_spawner"
UID_RANGE = 0x7000_0000  # as the keeper's; a guest's own pid makes it unique while it lives
QUOTA_VARIABLE = "HATCHWAY_QUOTA"  # how a guest learns its limits; gone before the code runs


def main() -> None:
    """Become a spawner of sealed guests."""
    description = json.loads(sys.argv[1])
    for name, folders in {**description["packages"], SPAWNER: [os.path.dirname(sys.argv[2])]}.items():
        package = types.ModuleType(name)
        package.__path__ = folders
        sys.modules[name] = package
    importlib.import_module("_hatchway_jail.policy").system_calls(False)  # assembled once, for all guests
    guest: Any = importlib.import_module(SPAWNER + ".guest")
    serve = guest._serve

    def sealed_serve(read_fd: int, write_fd: int) -> None:
        seal(description, {read_fd, write_fd})
        serve(read_fd, write_fd)

    guest._serve = sealed_serve
    importlib.import_module(SPAWNER + ".spawner").main(int(sys.argv[3]), sys.argv[4])


def seal(description: dict[str, Any], kept: set[int]) -> None:
    """Give up all but the interpreter's files, the own folder and the channel."""
    kernel, policy = (importlib.import_module("_hatchway_jail." + name) for name in ("kernel", "policy"))
    quota = json.loads(os.environ.pop(QUOTA_VARIABLE))
    kernel.close_all_but({0, 1, 2, *kept})
    sys.path[:] = description["sys_path"]
    folder = os.getcwd()
    tasks = 0
    if os.geteuid() == 0:
        _become_nobody_else(kernel, folder)
    else:
        tasks = _tasks_of_user()
        kernel.drop_capabilities()
    allowed = quota["rlimits"]["RLIMIT_NPROC"]
    quota["rlimits"]["RLIMIT_NPROC"] = [tasks + most for most in allowed]  # it counts every task of the user
    kernel.set_rlimits(quota["rlimits"])
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    policy.restrict_paths(description["readable"], [folder], listable=description["listable"])
    policy.restrict_system_calls(False)
    sys.path += description["package_path"]  # only now: the walls stand


def _become_nobody_else(kernel: Any, folder: str) -> None:
    """A uid that no other process and no file has."""
    uid = UID_RANGE + os.getpid()
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
