"""Keeps one Docker engine for a test run: `keeper.py HOME`. Ends when nobody in HOME/users lives any more."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import rootfs

IMAGE = "python:3.12-slim"
"""The default image's name, so that what needs no setting can be tried; inside is this machine's Python."""
START_SECONDS, STOP_SECONDS = 60.0, 20.0
LOOK_SECONDS = 0.3


class Engine:
    """A `dockerd` of its own below `home`."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.host = f"unix://{home}/engine.sock"
        self._cgroup = f"hatchway-tests-{os.getpid()}"
        self._daemon: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and import the image."""
        (self._home / "daemon.json").write_text("{}")
        with open(self._home / "log", "wb") as log:
            self._daemon = subprocess.Popen(self._command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + START_SECONDS
        while self.docker("version").returncode != 0:
            if self._daemon.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"dockerd does not start: {self._last_words()}")
            time.sleep(0.1)
        with subprocess.Popen(["docker", "-H", self.host, "import", "-", IMAGE], stdin=subprocess.PIPE) as importing:
            assert importing.stdin is not None
            rootfs.write(importing.stdin)
            importing.stdin.close()
        if importing.returncode:
            raise RuntimeError("the image cannot be imported")

    def stop(self) -> None:
        """Remove what runs, stop the daemon by its pid, leave no mount and no cgroup."""
        if self._daemon is None:
            return
        names = self.docker("ps", "-aq").stdout.split()
        if names:
            self.docker("rm", "-f", *names)
        self._daemon.send_signal(signal.SIGTERM)
        try:
            self._daemon.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._daemon.kill()
            self._daemon.wait()
        for process in [*self._left_processes(), *self._contained()]:
            _kill(process)  # what runs on when a test has killed dockerd
        for mount in self._mounts():
            subprocess.run(["umount", "-l", mount], check=False)
        for folder in self._cgroups():
            _remove_cgroups(folder)

    def docker(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run the client against it."""
        return subprocess.run(["docker", "-H", self.host, *args], capture_output=True, text=True, timeout=60)

    def _command(self) -> list[str]:
        home = self._home
        return [
            "dockerd", f"--host={self.host}", f"--data-root={home}/data", f"--exec-root={home}/exec",
            f"--pidfile={home}/engine.pid", f"--config-file={home}/daemon.json", f"--cgroup-parent=/{self._cgroup}",
            "--iptables=false", "--ip6tables=false", "--bridge=none",
        ]  # fmt: skip

    def _last_words(self) -> str:
        lines = (self._home / "log").read_text(errors="replace").splitlines()
        return " / ".join(lines[-3:])

    def _mounts(self) -> list[str]:
        with open("/proc/self/mounts") as f:
            mounts = [line.split()[1].encode().decode("unicode_escape") for line in f]
        return [mount for mount in reversed(mounts) if mount.startswith(f"{self._home}/")]

    def _contained(self) -> set[int]:
        """Processes in containers; with their engine dead nobody else ends them."""
        lists = [Path(folder, "cgroup.procs") for top in self._cgroups() for folder, _, _ in os.walk(top)]
        return {int(pid) for each in lists if each.exists() for pid in each.read_text().split()}

    def _cgroups(self) -> list[Path]:
        """Its own at the top of each hierarchy; not looked for deeper, where others come and go."""
        root = Path("/sys/fs/cgroup")
        tops = [root / self._cgroup, *(each / self._cgroup for each in root.iterdir())]
        return [top for top in tops if top.is_dir()]

    def _left_processes(self) -> Iterator[int]:
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit() and int(folder.name) != os.getpid():
                try:
                    command = (folder / "cmdline").read_bytes()
                except OSError:
                    continue
                if f"{self._home}/".encode() in command and b"keeper.py" not in command:
                    yield int(folder.name)


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _remove_cgroups(folder: Path) -> None:
    if folder.is_dir():
        for below in folder.iterdir():
            if below.is_dir():
                _remove_cgroups(below)
        for _ in range(50):  # a killed process leaves its cgroup a moment later
            try:
                folder.rmdir()
                return
            except OSError:
                time.sleep(0.1)
        sys.stderr.write(f"{folder} is left behind\n")


def main(home: Path) -> None:
    """Serve until nobody is left."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests; they leave, then this ends
    engine = Engine(home)
    try:
        engine.start()
        _tell(home, {"host": engine.host, "image": IMAGE})
        while _is_wanted(home):
            time.sleep(LOOK_SECONDS)
    except Exception as e:
        _tell(home, {"error": str(e)})
        with locked(Path((home / "meeting").read_text())):
            _forget(home)
        time.sleep(2 * LOOK_SECONDS)  # whoever waits for it reads that
    finally:
        try:
            engine.stop()
        finally:
            shutil.rmtree(home, ignore_errors=True)


def _is_wanted(home: Path) -> bool:
    """Whether anybody lives who uses it; the last look is under the lock, so nobody joins one that ends."""
    if _lives(home):
        return True
    with locked(Path((home / "meeting").read_text())):
        if _lives(home):
            return True
        _forget(home)
        return False


def _lives(home: Path) -> bool:
    return any(Path("/proc", user.name).exists() for user in (home / "users").iterdir())


def _forget(home: Path) -> None:
    (Path((home / "meeting").read_text()) / "engine-home").unlink(missing_ok=True)


def _tell(home: Path, told: dict[str, str]) -> None:
    (home / "ready.new").write_text(json.dumps(told))
    (home / "ready.new").rename(home / "ready.json")


@contextmanager
def locked(meeting: Path) -> Iterator[None]:
    """One at a time decides about the engine of a run."""
    with open(meeting / "engine.lock", "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    main(Path(sys.argv[1]))
