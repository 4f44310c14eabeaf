"""A real terminal, in two windows: one follows a run, in the other a person decides about it."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed: apt-get install tmux")
TOOLS = '''
from hatchway import tool

@tool(approval="ask")
def send(to: str, text: str) -> str:
    """Send a message."""
    with open("effects.txt", "a") as file:
        file.write(to + " ")
    return f"sent to {to}: {text}"
'''
CODE = """
print(send("ada", "\\x1b[31mred\\x1b]0;title\\x07 " + "x" * 70))
send("bob", "bye")
"""
PROMPT = "ready$ "


class Window:
    """One window of 80 columns, with a shell."""

    def __init__(self, tmux: Callable[..., str], name: str) -> None:
        self._tmux, self._name = tmux, name

    def type(self, text: str) -> None:
        """Type a line and press Enter."""
        self._tmux("send-keys", "-t", self._name, "-l", text)
        self._tmux("send-keys", "-t", self._name, "Enter")

    @property
    def screen(self) -> str:
        """What stands there, all that scrolled away included."""
        return self._tmux("capture-pane", "-p", "-J", "-S", "-", "-t", self._name)

    def wait_for(self, text: str, times: int = 1) -> str:
        """The screen, once the text stands on it."""
        end = time.monotonic() + 40
        while self.screen.count(text) < times:
            assert time.monotonic() < end, self.screen
            time.sleep(0.05)
        return self.screen


@pytest.fixture
def windows(tmp_path: Path) -> Iterator[Callable[[str], Window]]:
    """Opens windows of a tmux of this test alone."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("TMUX")}
    env |= {"TERM": "xterm-256color", "PS1": PROMPT, "ENV": "", "LC_ALL": "C.UTF-8"}
    server = ["tmux", "-S", str(tmp_path / "tmux"), "-f", os.devnull]

    def tmux(*args: str) -> str:
        command = [*server, *args]
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    def opened(name: str) -> Window:
        tmux("new-session", "-d", "-x", "80", "-y", "40", "-s", name, "-c", str(tmp_path), "sh")
        return Window(tmux, name)

    yield opened
    subprocess.run([*server, "kill-server"], env=env, capture_output=True)


def test_one_window_follows_what_is_decided_in_the_other(hatchway: Any, windows: Any) -> None:
    hatchway.file("shop.py", TOOLS)
    assert hatchway("exec", hatchway.file("action.py", CODE), "--tools", "shop.py").returncode == 5
    run_id = hatchway.json("runs", "--json")[0]["run_id"]
    command = f"{sys.executable} -m hatchway"
    watching, deciding = windows("watching"), windows("deciding")

    watching.type(f"{command} show -f {run_id[:8]}; echo exit $?")
    watching.wait_for(f"1 call waits for a decision: hatchway approve {run_id[:8]} (or deny)")

    deciding.type(
        f"clear; {command} approve {run_id[:8]} && {command} resume {run_id[:8]} --tools shop.py; echo exit $?"
    )
    seen = deciding.wait_for("allow? [Enter/y] yes  [n reason] no ›")
    assert "send asks for approval" in seen
    assert "text='bye'," in seen
    watching.wait_for("goes on, taken up for the second time")
    deciding.type("y")
    assert "'sent to bob: bye'" in deciding.wait_for("exit 0")

    told = watching.wait_for("exit 0")
    assert "allowed by a person" in told
    assert "\\x1b[31mred\\x1b]0;title\\x07" in told
    assert "= 'sent to bob: bye'" in told
    assert "■ done" in told
    assert (hatchway.cwd / "effects.txt").read_text(encoding="utf-8") == "ada bob "
