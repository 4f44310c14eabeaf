"""One private engine for all workers of a test run; `sharing.py COMMAND …` runs a command with one of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # the keeper runs as a script, so its neighbours are top-level names
from keeper import START_SECONDS, STOP_SECONDS, locked

KEEPER = Path(__file__).with_name("keeper.py")


def reason_to_skip() -> str:
    """Why no engine can be started here; empty when one can be tried."""
    if sys.platform != "linux":
        return "a private engine needs Linux"
    if os.geteuid() != 0:
        return "dockerd needs root"
    for program in ("dockerd", "docker", "ldd"):
        if shutil.which(program) is None:
            return f"there is no {program}; as root on Debian .ci/packages installs it"
    return ""


@contextmanager
def engine(meeting: Path) -> Iterator[dict[str, str]]:
    """What the keeper of this run tells: `host` and `image`, or `error`. Everybody with the same folder shares it."""
    home = _join(meeting)
    try:
        yield _told(home)
    finally:
        (home / "users" / str(os.getpid())).unlink(missing_ok=True)
        deadline = time.monotonic() + 2 * STOP_SECONDS
        while home.exists() and not _has_users(home) and time.monotonic() < deadline:
            time.sleep(0.1)  # the last to leave waits until nothing is left


def _join(meeting: Path) -> Path:
    with locked(meeting):
        record = meeting / "engine-home"
        if record.exists():
            home = Path(record.read_text())
        else:
            home = Path(tempfile.mkdtemp(prefix="hatchway-engine-"))  # short: a socket's path has a limit
            (home / "users").mkdir()
            (home / "meeting").write_text(str(meeting))
            record.write_text(str(home))
            _start_keeper(home)
        (home / "users" / str(os.getpid())).touch()
    return home


def _start_keeper(home: Path) -> None:
    """Not our child: whichever worker ends first, the engine stays for the others."""
    (home / "users" / str(os.getpid())).touch()
    with open(home / "keeper.log", "wb") as log:
        started = subprocess.Popen(
            ["/bin/sh", "-c", '"$@" & exit 0', "sh", sys.executable, str(KEEPER), str(home)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    started.wait()


def _told(home: Path) -> dict[str, str]:
    deadline = time.monotonic() + 2 * START_SECONDS
    while not (home / "ready.json").exists():
        if time.monotonic() > deadline or not home.exists():
            return {"error": "the keeper of the engine says nothing"}
        time.sleep(0.05)
    return json.loads((home / "ready.json").read_text())


def _has_users(home: Path) -> bool:
    try:
        return any(Path("/proc", user.name).exists() for user in (home / "users").iterdir())
    except OSError:
        return False


if __name__ == "__main__":
    if reason := reason_to_skip():
        sys.exit(reason)
    with tempfile.TemporaryDirectory() as folder, engine(Path(folder)) as told:
        if "error" in told:
            sys.exit(told["error"])
        print(f"DOCKER_HOST={told['host']}", flush=True)  # noqa: T201
        status = subprocess.call(sys.argv[1:], env={**os.environ, "DOCKER_HOST": told["host"]})
    sys.exit(status)
