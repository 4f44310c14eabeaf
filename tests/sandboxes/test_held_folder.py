"""Folders held by a lock: gone with their process, or swept by a later one; never one that is in use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from tests.sandboxes.test_monty_pool import python

from hatchway.sandboxes.held_folder import HeldFolder

HOLD = """
from pathlib import Path
from hatchway.sandboxes.held_folder import HeldFolder
folder = HeldFolder("monty")
Path(folder.path, "deep", "er").mkdir(parents=True)
Path(folder.path, "deep", "er", "file").write_text("x")
print(folder.path, flush=True)
input()
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder that nobody else uses."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def place(root: Path) -> Path:
    return root / f"hatchway-{os.geteuid()}"


def other_host(root: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process with a folder of its own in the same place."""
    host = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(root)},
    )
    assert host.stdout is not None
    return host, Path(host.stdout.readline().strip())


def end(host: subprocess.Popen[str]) -> None:
    host.send_signal(signal.SIGKILL)
    host.communicate()


def swept(path: Path, seconds: float = 5.0) -> bool:
    until = time.monotonic() + seconds
    while path.exists() and time.monotonic() < until:
        time.sleep(0.01)
    return not path.exists()


def test_nothing_is_left_by_whoever_removes_its_folders(root: Path, place: Path) -> None:
    first, second = HeldFolder("monty"), HeldFolder("output")
    assert [Path(f.path).parent for f in (first, second)] == [place, place]
    assert (place.stat().st_mode & 0o777, os.stat(first.path).st_mode & 0o777) == (0o700, 0o700)
    first.remove()
    first.remove()
    assert place.exists()
    second.remove()
    assert list(root.iterdir()) == []


def test_what_a_killed_process_left_is_swept_and_what_a_live_one_holds_is_not(root: Path, place: Path) -> None:
    dead, left = other_host(root)
    alive, held = other_host(root)
    end(dead)
    assert (left / "deep" / "er" / "file").exists()
    own = HeldFolder("monty")
    try:
        assert swept(left)
        assert (held / "deep" / "er" / "file").exists()
        assert Path(own.path).exists()
    finally:
        own.remove()
        end(alive)
    assert list(place.iterdir()) == [held]  # a process sweeps once, when it begins
    next_one, _ = other_host(root)
    assert swept(held)
    end(next_one)


@pytest.mark.parametrize("taken", ["link", "open", "file"])
def test_a_place_that_somebody_else_prepared_is_not_used(root: Path, place: Path, taken: str) -> None:
    elsewhere = root / "elsewhere"
    elsewhere.mkdir()
    if taken == "link":
        place.symlink_to(elsewhere)
    elif taken == "open":
        place.mkdir()
        place.chmod(0o777)
    else:
        place.touch()
    folder = HeldFolder("monty")
    assert Path(folder.path).parent == root
    folder.remove()
    assert sorted(root.iterdir()) == sorted([elsewhere, place])


def test_folders_made_and_removed_by_many_at_once(root: Path) -> None:
    """The place comes and goes under everybody's hands."""
    failed: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(50):
                folder = HeldFolder("output")
                Path(folder.path, "file").touch()
                folder.remove()
        except OSError as e:
            failed.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert list(root.iterdir()) == []


def test_monty_killed_in_the_middle_leaves_nothing_that_the_next_one_does_not_take(root: Path, place: Path) -> None:
    script = """
        from pathlib import Path
        async def main():
            sandbox = MontySandbox(workspace_root=Path.cwd())
            execution = await sandbox.execute("open('/output/a', 'w').write('x')\\nf()", ["f"])
            await execution.next()
            print(*os.listdir(os.environ["TMPDIR"] + f"/hatchway-{os.geteuid()}"), flush=True)
            if "KILLED" in os.environ:
                os.kill(os.getpid(), 9)
            await sandbox.aclose()
        asyncio.run(main())
    """
    killed = python(script, temp=root, KILLED="yes")
    assert killed.returncode == -signal.SIGKILL
    assert sorted(name.partition("-")[0] for name in killed.stdout.split()) == ["monty", "output"]
    ended = python(script, temp=root)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert swept(place)
