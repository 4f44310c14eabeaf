"""What it costs to start a command behind the wall: `true` and `python3 -c`, ours beside bubblewrap and no wall."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from statistics import median

from tables import Section, Target, duration

from hatchway.core.paths import path_rules
from hatchway.sandboxes.jail import CommandJail

NOTE = """\
From the call to the exit code, {rounds} interleaved rounds, the machine in use by others. A warm jail is one
`CommandJail` that starts many; a cold one is made and closed each time; `hatchway jail` also starts its own Python.
srt (`npm install -g @anthropic-ai/sandbox-runtime`) is a row where it is installed; on a quiet machine of this kind its
version 0.0.78 took 461 ms with Python."""
BWRAP = (
    "bwrap --unshare-all --clearenv --die-with-parent --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib"
    " --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp --setenv PATH /usr/bin"
)
COMMANDS = {"true": ["true"], "python3 -I -S -c 1": ["/usr/bin/python3", "-I", "-S", "-c", "1"]}


def report(*, quick: bool) -> Section:
    """The section of the report."""
    rounds = 5 if quick else 25
    spent = asyncio.run(_measured(rounds))
    rows = [
        [name, *(cell for each in by_command.values() for cell in (duration(min(each)), duration(median(each))))]
        for name, by_command in spent.items()
    ]
    cold = spent["a cold jail"]["true"]
    return Section(
        title="Commands",
        note=NOTE.format(rounds=rounds),
        head=["started how", *(f"`{name}`, {what}" for name in COMMANDS for what in ("min", "median"))],
        rows=rows,
        targets=[
            Target(
                what="start of a command, cold (srt: 460 ms)", limit=460, unit=" ms", judged=1,
                values=(min(cold) * 1e3, median(cold) * 1e3),
            )
        ],
    )  # fmt: skip


async def _measured(rounds: int) -> dict[str, dict[str, list[float]]]:
    async with CommandJail() as warm, CommandJail(tier="landlock") as landlock, _guarded() as guarded:
        ways = {
            "no wall": _plain([]),
            **({"bubblewrap": _plain(BWRAP.split())} if shutil.which("bwrap") else {}),
            **({"srt": _srt} if _has_srt() else {}),
            "`hatchway jail`": _plain([str(Path(sys.executable).parent / "hatchway"), "jail", "--"]),
            "a cold jail": _cold,
            "a warm jail": _in(warm),
            "a warm jail, `deny_read`": _in(guarded),
            "a warm jail, landlock": _in(landlock),
        }
        spent = {way: {name: list[float]() for name in COMMANDS} for way in ways}
        for turn in range(rounds + 1):
            for way, run in ways.items():
                for name, argv in COMMANDS.items():
                    started = time.perf_counter()
                    await run(argv)
                    if turn:  # the first warms up
                        spent[way][name].append(time.perf_counter() - started)
    return spent


def _guarded() -> CommandJail:
    return CommandJail(paths=path_rules(read=[Path(__file__).parent], deny_read=[".env"]))


def _plain(prefix: Sequence[str]) -> Callable[[list[str]], Awaitable[None]]:
    async def run(argv: list[str]) -> None:
        await asyncio.to_thread(subprocess.run, [*prefix, *argv], check=True, stdin=subprocess.DEVNULL)

    return run


def _has_srt() -> bool:
    """Whether it is installed, with what it needs."""
    return bool(shutil.which("srt")) and not subprocess.run(["srt", "-c", "true"], check=False).returncode


async def _srt(argv: list[str]) -> None:
    await _plain(["srt", "-c"])([shlex.join(argv)])  # it joins its arguments itself, without quotes


def _in(jail: CommandJail) -> Callable[[list[str]], Awaitable[None]]:
    async def run(argv: list[str]) -> None:
        done = await jail.run(argv)
        assert done.exit_code == 0, done

    return run


async def _cold(argv: list[str]) -> None:
    async with CommandJail() as jail:
        await _in(jail)(argv)


if __name__ == "__main__":
    print(report(quick="--quick" in sys.argv).markdown())
