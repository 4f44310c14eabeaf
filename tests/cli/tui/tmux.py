"""A real terminal of 80 columns, typed at by a test."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path


class Terminal:
    """One tmux server of one test, with one window in it.

    Args:
        folder: The workspace; the command is started in it.
        columns, lines: Its size.
    """

    def __init__(self, folder: Path, columns: int = 80, lines: int = 40) -> None:
        self.folder, self._size = folder, (columns, lines)
        self._server = ["tmux", "-S", str(folder.parent / f"{folder.name}.tmux"), "-f", os.devnull]
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("TMUX", "NO_COLOR"))}
        self._env = {key: value for key, value in kept.items() if not key.endswith("_API_KEY")}
        self._env |= {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "HOME": str(folder), "PYTHONWARNINGS": "error"}
        self._env |= {"HATCHWAY_LOCAL_MODELS": "off"}  # of the machine the tests run on

    def start(self, *args: str, **env: str) -> None:
        """Start the command in a fresh window; when it ends, its exit code stands there."""
        columns, lines = self._size
        command = " ".join([sys.executable, "-m", "hatchway", *args])
        shell = f"cd '{self.folder}'; {command}; echo exit $?; exec sleep 300"
        given = [word for name, value in env.items() for word in ("-e", f"{name}={value}")]
        size = ["-x", str(columns), "-y", str(lines)]
        self._tmux("new-session", "-d", *size, *given, "-s", f"w{time.monotonic_ns()}", "sh", "-c", shell)

    def press(self, *keys: str) -> None:
        """Press keys by their names in tmux, such as Enter, Escape, M-Enter."""
        self._tmux("send-keys", *keys)

    def type(self, text: str, *keys: str) -> None:
        """Type a text, then press keys."""
        self._tmux("send-keys", "-l", text)
        if keys:
            self.press(*keys)

    def paste(self, text: str) -> None:
        """Paste a text, as a terminal does that says so."""
        self._tmux("set-buffer", text)
        self._tmux("paste-buffer", "-p")

    @property
    def screen(self) -> str:
        """What stands there, all that scrolled away included, without what differs from run to run."""
        return normal(self._tmux("capture-pane", "-p", "-J", "-S", "-"))

    @property
    def painted(self) -> str:
        """The same with its colours, as escape sequences."""
        return self._tmux("capture-pane", "-p", "-e", "-S", "-")

    @property
    def pid(self) -> int:
        """The process of the command."""
        shell = self._tmux("list-panes", "-F", "#{pane_pid}").strip()
        found = subprocess.run(["pgrep", "-P", shell], capture_output=True, text=True, check=True)
        return int(found.stdout.split()[0])

    def wait_for(self, text: str, times: int = 1) -> str:
        """The screen, once the text stands on it so many times."""
        end = time.monotonic() + 60
        while (screen := self.screen).count(text) < times:
            assert time.monotonic() < end, f"no {text!r} on:\n{screen}"
            time.sleep(0.05)
        return screen

    def wait_for_end(self, pattern: re.Pattern[str]) -> str:
        """The screen, once it ends so."""
        end = time.monotonic() + 60
        while not pattern.search(screen := self.screen):
            assert time.monotonic() < end, f"no {pattern.pattern!r} at the end of:\n{screen}"
            time.sleep(0.05)
        return screen

    def end(self) -> None:
        """Kill the window and all in it."""
        subprocess.run([*self._server, "kill-server"], env=self._env, capture_output=True)

    def _tmux(self, *args: str) -> str:
        command = [*self._server, *args]
        return subprocess.run(command, env=self._env, capture_output=True, text=True, check=True).stdout


def normal(screen: str) -> str:
    """A screen without times, sizes, spinners, paths and trailing space."""
    screen = re.sub(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]", "*", screen)
    screen = re.sub(r"^ +[\d.:]+ (ms|s|min) (?=\S)", "     0 ms ", screen, flags=re.MULTILINE)
    screen = re.sub(r"  ran .*$", "  ran", screen, flags=re.MULTILINE)
    screen = re.sub(r" +\d+(\.\d+)? m?s$", "", screen, flags=re.MULTILINE)
    screen = re.sub(r"(\* [\w ]+?) \d+\.\d s", r"\1", screen)
    screen = re.sub(r"\d+(\.\d+)?k? tokens", "N tokens", screen)
    screen = re.sub(r"hatchway \S+ · .*", "hatchway", screen)
    return "\n".join(line.rstrip() for line in screen.splitlines()).rstrip() + "\n"


def is_there() -> bool:
    """Whether there is a tmux to test with."""
    return shutil.which("tmux") is not None and shutil.which("pgrep") is not None
