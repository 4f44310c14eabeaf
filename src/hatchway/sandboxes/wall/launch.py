"""Seal this process and become a program, started as `command` says. What the kernel lacks is left out."""

from __future__ import annotations

import ctypes
import os
import resource
import sys

from . import landlock, policy, seccomp

_PR_SET_PDEATHSIG, _SIGKILL = 1, 9  # `import signal` would cost more than all the rest
_OPEN_FILES = 64
_MAIN = "import sys; sys.path.append(sys.argv.pop(1)); from wall import launch; launch.main()"


def command(program: str) -> list[str]:
    """The command that runs a program sealed; the program's arguments follow. With none, it tells what holds instead.

    The folder of this package's folder is searched as it is: importing all of Hatchway would cost more than a worker.
    """
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return [sys.executable, "-I", "-S", "-c", _MAIN, folder, program]


def main() -> None:
    """Seal, then run the program or tell what holds."""
    program, *arguments = sys.argv[1:]
    held = seal(program)
    if arguments:
        os.execv(program, [program, *arguments])
    sys.stdout.write("\n".join(held))


def seal(program: str) -> list[str]:
    """Give up all that a computing program does not need; the names of the walls that now hold."""
    _limit()
    held: list[str] = []
    try:
        seccomp.no_new_privs()
        if landlock.abi():
            landlock.restrict(policy.program_files(program))
            held.append("Landlock")
        seccomp.install(seccomp.assemble(policy.compute_only(os.getpid()), default=policy.OTHERWISE))
        held.append("seccomp")
    except (OSError, KeyError):  # no such wall in this kernel, container or on this machine
        pass
    return held


def _limit() -> None:
    """No core dumps, no growing files, few descriptors, none inherited; dead when the host is."""
    os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    core = min(1, abs(resource.getrlimit(resource.RLIMIT_CORE)[1]))  # infinity is -1
    resource.setrlimit(resource.RLIMIT_CORE, (core, core))  # at 0 the machine's own handler of dumps is still started
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
