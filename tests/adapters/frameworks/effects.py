"""The tools of the table, as plain functions; each leaves a line in a file, which a second process sees too."""

import os
import signal
from pathlib import Path

LOG = "HATCHWAY_TEST_EFFECTS"
DIES = "HATCHWAY_TEST_DIES"
"""Set where the process is killed in the middle of the approved call."""


def _note(line: str) -> None:
    with Path(os.environ[LOG]).open("a") as file:
        file.write(line + "\n")


def effects() -> list[str]:
    path = Path(os.environ[LOG])
    return path.read_text().splitlines() if path.exists() else []


async def read(key: str) -> str:
    """Read a value."""
    _note(f"read {key}")
    return f"value of {key}"


def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    _note(f"add {a} {b}")
    return a + b


def boom() -> str:
    """Always fails."""
    _note("boom")
    raise LookupError("nothing there")


async def wipe(path: str) -> str:
    """Delete something, once somebody agrees."""
    _note(f"wipe {path}")
    if os.environ.get(DIES):
        os.kill(os.getpid(), signal.SIGKILL)
    return f"wiped {path}"
