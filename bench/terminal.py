"""How soon a person can type: from the command to a prompt that shows what was typed, at a real pseudo-terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

from peers import NESTED, environment, is_ready
from tables import Section, Target, duration

NOTE = """\
From starting the command until its prompt shows what is typed, at a pseudo-terminal in an empty workspace,
{rounds} rounds, compiled files warm; CPU is that of the command until then. Nothing is typed before the command has
switched the terminal's own echo off. freeact is given a key, its own interpreter on PATH and no server to search with,
without which it does not start here; `--help` is user and system CPU of the whole process."""
TYPED = "zq"
LONGEST = 60.0
TICK = os.sysconf("SC_CLK_TCK")


class Usable(NamedTuple):
    """When a prompt was usable."""

    wall: float
    """Seconds after the command."""
    cpu: float
    """Seconds of the process."""


def report(*, quick: bool) -> Section:
    """The section of the report."""
    rounds = 3 if quick else 9
    ours = str(Path(sys.executable).parent / "hatchway")
    commands: dict[str, Sequence[str]] = {"hatchway": (ours, "--model", "human")}
    if is_ready(NESTED):
        commands[NESTED.name] = (str(NESTED.folder / "bin" / "freeact"),)
    taken: dict[str, list[Usable]] = {name: [] for name in commands}
    helped: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            if name != "hatchway" and turn > 2:
                continue
            found, cpu = usable(command), _help_cpu((command[0], "--help"))
            if turn and found is not None:  # the first time compiles
                taken[name].append(found)
                helped[name].append(cpu)
    return Section(
        title="Terminal",
        note=NOTE.format(rounds=rounds),
        head=["command", "prompt usable, min", "median", "CPU until then", "`--help`, CPU"],
        rows=[_row(name, taken[name], helped[name]) for name in commands],
        targets=[
            _target("prompt usable after the command", 0.5, [each.wall for each in taken["hatchway"]]),
            _target("`hatchway --help`, CPU", 0.15, helped["hatchway"]),
        ],
    )


def usable(command: Sequence[str]) -> Usable | None:
    """When the prompt of a command could be used; None when it ended, or took a minute."""
    with tempfile.TemporaryDirectory() as folder:
        env = environment() | {"TERM": "xterm-256color", "GEMINI_API_KEY": "none", "HOME": folder}
        env["PATH"] = f"{Path(command[0]).parent}{os.pathsep}{env.get('PATH', os.defpath)}"
        if Path(command[0]).name == "freeact":
            _without_servers(command[0], folder, env)
        person, program = pty.openpty()
        fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
        started = time.monotonic()
        process = _started(command, program, env, folder)
        try:
            if not _shows_what_is_typed(person, program, started):
                return None
            return Usable(time.monotonic() - started, _cpu_of(process.pid))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            os.close(person)
            os.close(program)


def _without_servers(program: str, folder: str, env: Mapping[str, str]) -> None:
    """Make freeact's settings, and leave the server out that asks Google."""
    subprocess.run([program, "init"], cwd=folder, env=env, capture_output=True)
    path = Path(folder, ".freeact", "agent.json")
    with suppress(OSError, ValueError):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"ptc_servers": {}}))


def _started(command: Sequence[str], fd: int, env: Mapping[str, str], folder: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdin=fd, stdout=fd, stderr=fd, env=env, cwd=folder, start_new_session=True)


def _shows_what_is_typed(person: int, program: int, started: float) -> bool:
    """Type as soon as the program reads keys itself, and again while nothing is to be seen of it."""
    shown, typed_at = b"", 0.0
    while time.monotonic() - started < LONGEST:
        is_raw = not termios.tcgetattr(program)[3] & termios.ECHO
        if is_raw and time.monotonic() - typed_at > 0.1:
            os.write(person, TYPED.encode())
            typed_at, shown = time.monotonic(), b"" if not typed_at else shown
        if select.select([person], [], [], 0.002)[0]:
            shown += os.read(person, 65536)
        if typed_at and TYPED.encode() in shown:
            return True
    return False


def _cpu_of(pid: int) -> float:
    """CPU seconds of a process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:15]) / TICK


def _help_cpu(command: Sequence[str]) -> float:
    before = os.times()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(), cwd="/")
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def _row(name: str, taken: Sequence[Usable], helped: Sequence[float]) -> list[str]:
    if not taken:
        return [name, "does not start", "–", "–", "–"]
    walls, cpus = [each.wall for each in taken], [each.cpu for each in taken]
    return [name, duration(min(walls)), duration(median(walls)), duration(min(cpus)), duration(min(helped))]


def _target(what: str, limit: float, values: Sequence[float]) -> Target:
    return Target(what=what, limit=limit, unit=" s", values=(min(values), median(values)) if values else ())


if __name__ == "__main__":
    print(report(quick="--quick" in sys.argv).markdown())
