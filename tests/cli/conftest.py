"""The command as a user runs it: a process of its own, with or without a terminal."""

import json
import os
import pty
import runpy
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.weaker_wall import without_warning

HATCHWAY = [sys.executable, "-W", "error", "-m", "hatchway"]
TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(2, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


class Hatchway:
    """Runs `hatchway` in an empty directory, without a terminal."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd

    def __call__(self, *args: str, stdin: str | bytes = "", **env: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        given = stdin.encode() if isinstance(stdin, str) else stdin
        command, env = [*HATCHWAY, *args], os.environ | {"COLUMNS": "100"} | env
        ran = subprocess.run(
            command, input=given, capture_output=True, cwd=self.cwd, env=env, timeout=60, start_new_session=True
        )
        stderr = without_warning(ran.stderr.decode())
        return subprocess.CompletedProcess(command, ran.returncode, ran.stdout.decode(), stderr)

    def json(self, *args: str, **options: Any) -> Any:
        """Run it and read the one JSON object it prints."""
        return json.loads(self(*args, **options).stdout)

    def file(self, name: str, text: str) -> str:
        """Write a file beside it; its name."""
        (self.cwd / name).write_text(text, encoding="utf-8")
        return name


class Screen:
    """`hatchway` at a terminal of 100 columns, typed at by a test."""

    def __init__(self, command: list[str], cwd: Path, stdin: int | None) -> None:
        self._fd, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-c", TAKE_TERMINAL, *command],
            stdin=theirs if stdin is None else stdin,
            stdout=theirs,
            stderr=theirs,
            cwd=cwd,
            env=os.environ | {"COLUMNS": "100", "TERM": "dumb"},
            start_new_session=True,
        )
        os.close(theirs)
        self.text = ""

    def wait_for(self, text: str, times: int = 1) -> None:
        """Read until the text stands on the screen so many times."""
        until = time.monotonic() + 30
        while self.text.count(text) < times:
            assert time.monotonic() < until, self.text
            assert self._read(), f"ended without {text!r}: {self.text}"

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._fd, keys.encode())

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self._read():
            pass
        return self._process.wait(30)

    def close(self) -> None:
        """End it if it still runs."""
        self._process.kill()
        self._process.wait()
        os.close(self._fd)

    def _read(self) -> bool:
        if not select.select([self._fd], [], [], 0.2)[0]:
            return self._process.poll() is None
        try:
            piece = os.read(self._fd, 65536)
        except OSError:  # Linux says EIO once the last program at a terminal has ended
            return False
        self.text += piece.decode(errors="replace").replace("\r\n", "\n")
        return bool(piece)


@pytest.fixture
def hatchway(tmp_path: Path) -> Hatchway:
    """The command, in a directory of its own."""
    return Hatchway(tmp_path)


@pytest.fixture
def stories(tmp_path: Path) -> Iterator[Any]:
    """Writes runs into the journal that the command finds."""
    made = runpy.run_path(str(Path(__file__).with_name("stories.py")))["Stories"](tmp_path)
    yield made
    made.journal.close()


@pytest.fixture
def at_terminal(tmp_path: Path) -> Iterator[Callable[..., Screen]]:
    """Starts the command at a terminal."""
    screens: list[Screen] = []

    def start(*args: str, stdin: int | None = None) -> Screen:
        screens.append(Screen([*HATCHWAY, *args], tmp_path, stdin))
        return screens[-1]

    yield start
    for screen in screens:
        screen.close()
