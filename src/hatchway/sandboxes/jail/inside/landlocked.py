"""The spawner of the landlock tier: the one of the process sandbox, whose guests seal themselves before they serve.

`python -I -S landlocked.py DESCRIPTION SPAWNER FD GUEST`: the last three are what the plain spawner is started with.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import sys
import types
from typing import Any

UID_RANGE = 0x7000_0000  # as the keeper's; a guest's own pid makes it unique while it lives
QUOTA_VARIABLE = "HATCHWAY_QUOTA"  # how a guest learns its limits; gone before the code runs


def main() -> None:
    """Become a spawner of sealed guests."""
    description = json.loads(sys.argv[1])
    for name, folders in description["packages"].items():
        package = types.ModuleType(name)
        package.__path__ = folders
        sys.modules[name] = package
    from _hatchway_jail import policy  # pyright: ignore

    policy.system_calls(False)  # assembled once, for all guests
    spec = importlib.util.spec_from_file_location("_hatchway_spawner", sys.argv[2])
    assert spec is not None and spec.loader is not None
    spawner: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(spawner)
    serve = spawner.serve

    def sealed_serve(read_fd: int, write_fd: int) -> None:
        seal(description, {read_fd, write_fd})
        serve(read_fd, write_fd)

    spawner.serve = sealed_serve
    sys.argv[1:] = sys.argv[3:]
    spawner.main()


def seal(description: dict[str, Any], kept: set[int]) -> None:
    """Give up all but the interpreter's files, the own folder and the channel."""
    from _hatchway_jail import kernel, policy  # pyright: ignore

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
    quota["rlimits"]["RLIMIT_NPROC"] += tasks  # it counts every task of the user
    for name, value in quota["rlimits"].items():
        which = getattr(resource, name)
        hard = resource.getrlimit(which)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    policy.restrict_paths(description["readable"], [folder])
    policy.restrict_system_calls(False)


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
                    tasks += len(os.listdir("/proc/%s/task" % name))
            except OSError:
                pass  # it has just ended, or is not ours to see
    return tasks


if __name__ == "__main__":
    main()
