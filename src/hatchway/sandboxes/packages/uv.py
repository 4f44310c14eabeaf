"""uv: found as a Python package or as a command, and asked to install into a folder."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import signal
from functools import cache
from pathlib import Path

from hatchway.core.errors import MissingExtra, SandboxUnavailable
from hatchway.sandboxes.packages.requirements import OnProgress, Packages

MAX_WORDS = 16_000
"""Characters kept of what uv said, from the end."""
MAX_LINE = 1 << 20
CHATTER = "Using CPython"
NO_WHEEL = "building from source is disabled"
_NOT_FOR_UV = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "UV_TARGET", "UV_SYSTEM_PYTHON")


@cache
def find_uv() -> str:
    """The uv binary: of the Python package `uv`, or of the PATH.

    Raises:
        MissingExtra: There is none.
    """
    if importlib.util.find_spec("uv") is not None:
        import uv  # pyright: ignore  # an optional extra

        try:
            return os.fspath(uv.find_uv_bin())  # pyright: ignore
        except FileNotFoundError:
            pass  # the package without its binary
    if (found := shutil.which("uv")) is not None:
        return found
    raise MissingExtra("packages= needs uv, which", "packages")


def install_command(packages: Packages, python: str, target: Path) -> list[str]:
    """The command that fills `target`."""
    index = [] if packages.index_url is None else ["--default-index", packages.index_url]
    return [
        *(find_uv(), "pip", "install", "--python", python, "--target", str(target)),
        *("--compile-bytecode", "--no-progress", "--color", "never"),
        *([] if packages.allow_sdists else ["--only-binary", ":all:"]),
        *(["--no-index"] if packages.no_index else index),
        *(word for link in packages.find_links for word in ("--find-links", str(link))),
        *("--", *packages.requirements),
    ]


async def install(packages: Packages, python: str, target: Path, tell: OnProgress, *, lock_fd: int) -> None:
    """Install into a new folder. The lock is inherited: it is held until uv too is gone. Killed when cancelled.

    Raises:
        SandboxUnavailable: uv failed; its own words are in the message.
    """
    command = install_command(packages, python, target)
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=target.parent,  # not the caller's: a uv.toml there could name another index
            env={name: value for name, value in os.environ.items() if name not in _NOT_FOR_UV},
            pass_fds=[lock_fd],
            umask=0o022,
            start_new_session=True,
            limit=MAX_LINE,
        )
    except OSError as e:
        raise SandboxUnavailable(f"{command[0]} cannot be started: {e}", hint="pip install --force-reinstall uv") from e
    try:
        words = await _heard(process, tell)
        failed = await process.wait()
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await asyncio.shield(process.wait())
    if failed:
        raise refused(packages, words)


async def _heard(process: asyncio.subprocess.Process, tell: OnProgress) -> str:
    assert process.stdout is not None
    words = ""
    while line := await process.stdout.readline():
        text = line.decode("utf-8", "replace").rstrip()
        tell(text)
        if not text.startswith(CHATTER):
            words = (words + text + "\n")[-MAX_WORDS:]
    return words.strip()


def refused(packages: Packages, words: str) -> SandboxUnavailable:
    """The error for an installation that failed."""
    names = ", ".join(packages.requirements)
    hint = "check the names and versions, and that the index can be reached"
    if NO_WHEEL in words:
        hint = "only wheels are installed; Packages([...], allow_sdists=True) runs build code on this host, unsealed"
    return SandboxUnavailable(f"the packages cannot be installed: {names}\n{words}", hint=hint)
