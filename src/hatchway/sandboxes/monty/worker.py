"""How a worker is started: sealed by the kernel on Linux, with its stderr away from the host's terminal."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pydantic_monty as pm
from pydantic_monty._binary import find_monty_binary

from hatchway.core.errors import SandboxUnavailable
from hatchway.sandboxes.held_folder import HeldFolder

_PROBE_SECONDS = 20.0
_SCRIPT = """#!/bin/sh
trap '' INT QUIT HUP  # Ctrl-C at the terminal is for the host, which then cancels what it likes
exec {} "$@" 2>/dev/null
"""


class WorkerCommand:
    """A small script that becomes the worker, for the pool takes one path and no arguments.

    It lies in a folder that only this user can enter, and is removed with the pool, or after it by another process.

    Args:
        is_sealed: Build the kernel's walls around the worker, where there are any.
    """

    def __init__(self, *, is_sealed: bool) -> None:
        self._folder: HeldFolder | None = None
        self.path: str | None = None
        """What to start; None lets the pool start Monty itself."""
        for parent in (_temporary, _cache) if os.name == "posix" else ():
            self.path = self._written(parent(), worker_command(is_sealed=is_sealed))
            if self.path is not None:
                break

    def remove(self) -> None:
        """Delete the script."""
        if self._folder is not None:
            self._folder.remove()

    def _written(self, parent: Path, command: list[str]) -> str | None:
        parent.mkdir(parents=True, exist_ok=True)
        self._folder = HeldFolder("monty", parent)
        script = Path(self._folder.path) / "worker"
        script.write_text(_SCRIPT.format(shlex.join(command)))
        script.chmod(0o700)
        if os.access(script, os.X_OK):
            return str(script)
        self.remove()  # a file system on which nothing may be executed
        return None


def _temporary() -> Path:
    return Path(tempfile.gettempdir())


def _cache() -> Path:
    from platformdirs import user_cache_path  # rarely needed

    return user_cache_path("hatchway")


def worker_command(*, is_sealed: bool) -> list[str]:
    """The command that starts a worker, before its arguments.

    Raises:
        SandboxUnavailable: Monty's program is not there.
    """
    try:
        binary = os.path.abspath(find_monty_binary())
    except FileNotFoundError:
        raise SandboxUnavailable(
            "the program `monty`, which runs the code, is not installed",
            hint="pip install --force-reinstall pydantic-monty",
        ) from None
    if not is_sealed or not is_sealable():
        return [binary]
    from hatchway.sandboxes.wall import launch  # needs a Linux libc

    return launch.command(binary)


def is_sealable() -> bool:
    """Whether this system has the kernel and the interpreter that seal a worker."""
    return sys.platform == "linux" and bool(sys.executable)


def walls() -> list[str]:
    """The walls that hold around a worker here, found out by building them."""
    if not is_sealable():
        return []
    command = worker_command(is_sealed=True)
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_SECONDS, env={}, check=False)
    except (OSError, subprocess.SubprocessError):
        return []
    return told.stdout.split()


def trial(*, is_sealed: bool) -> str:
    """Run code in a worker of a pool of its own; what went wrong, or nothing."""
    command = WorkerCommand(is_sealed=is_sealed)
    try:
        with pm.Monty(binary_path=command.path, max_processes=1, request_timeout=_PROBE_SECONDS) as pool:
            with pool.checkout() as session:
                output = session.feed_run("1 + 1")
    except (pm.MontyError, OSError, RuntimeError) as e:
        return f"a worker does not run: {e}"
    finally:
        command.remove()
    return "" if output == 2 else f"1 + 1 gave {output!r}"
