"""The command as a user runs it: a process of its own."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HATCHWAY = [sys.executable, "-W", "error", "-m", "hatchway"]


class Hatchway:
    """Runs `hatchway` in an empty directory, without a terminal."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd

    def __call__(self, *args: str, stdin: str | bytes = "", **env: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end; its output is text."""
        given = stdin.encode() if isinstance(stdin, str) else stdin
        ran = subprocess.run(
            [*HATCHWAY, *args], input=given, capture_output=True, cwd=self.cwd, env=os.environ | env, timeout=60
        )
        out, err = ran.stdout.decode(), ran.stderr.decode()
        return subprocess.CompletedProcess(ran.args, ran.returncode, out, err)

    def json(self, *args: str, **options: Any) -> Any:
        """Run it and read the one JSON object it prints."""
        return json.loads(self(*args, **options).stdout)

    def file(self, name: str, text: str) -> str:
        """A file beside it."""
        (self.cwd / name).write_text(text, encoding="utf-8")
        return name


@pytest.fixture
def hatchway(tmp_path: Path) -> Hatchway:
    """The command, in a directory of its own."""
    return Hatchway(tmp_path)


class Screen:
    """`hatchway` at a pseudo-terminal of 100 columns, typed at by a test."""

    def __init__(self, pid: int, fd: int) -> None:
        self.pid = pid
        self._fd = fd
        self.text = ""

    def wait_for(self, text: str, times: int = 1, seconds: float = 30) -> None:
        """Read until the text stands on the screen so many times."""
        until = time.monotonic() + seconds
        while self.text.count(text) < times:
            assert time.monotonic() < until, self.text
            if not self._read():
                raise AssertionError(f"ended without {text!r}: {self.text}")

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._fd, keys.encode())

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self._read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self) -> bool:
        if not select.select([self._fd], [], [], 0.2)[0]:
            return True
        try:
            piece = os.read(self._fd, 65536)
        except OSError:  # Linux says EIO when the last program at a terminal ends
            return False
        self.text += piece.decode(errors="replace")
        return bool(piece)


@pytest.fixture
def at_terminal(tmp_path: Path) -> Iterator[Callable[..., Screen]]:
    """Starts the command at a terminal; whatever still runs at the end is killed."""
    screens: list[Screen] = []

    def start(*args: str) -> Screen:
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(tmp_path)
            os.execve(sys.executable, [*HATCHWAY, *args], os.environ | {"COLUMNS": "100", "TERM": "dumb"})
        screens.append(Screen(pid, fd))
        return screens[-1]

    yield start
    for screen in screens:
        with_suppressed_kill(screen.pid)
        os.close(screen._fd)


def with_suppressed_kill(pid: int) -> None:
    """End a process that may have ended."""
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        return
