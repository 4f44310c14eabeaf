"""Rounds: contenders, one process each, measured in turns, so that a noisy moment hits all of them alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from peers import HERE, Peer, environment, installed

ALL = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
ONE = {max(ALL)} if ALL else set[int]()
"""The core that is kept busy; where a process cannot be confined, busy rounds are as the others."""
SPINNER = "import os\nos.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\nwhile True: pass"


@dataclass(slots=True)
class Contender:
    """A process that does jobs when told to, see `contenders/serving.py`."""

    name: str
    process: subprocess.Popen[str]
    jobs: tuple[str, ...]

    def measure(self, job: str, n: int) -> list[float]:
        """Seconds.

        Raises:
            RuntimeError: It could not do the job.
        """
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"job": job, "n": n}) + "\n")
        self.process.stdin.flush()
        answer = self.answer()
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return answer["seconds"]

    def answer(self) -> dict[str, list[float]]:
        """Its next line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended")
        return json.loads(line)


@dataclass(frozen=True, slots=True)
class Samples:
    """What the rounds gave for one contender, in seconds."""

    busy: list[float] = field(default_factory=list[float])
    """On one core that never sleeps."""
    idle: list[float] = field(default_factory=list[float])
    """On the machine as it is."""

    @property
    def best(self) -> float:
        """The minimum, on the busy core where that was measured."""
        return min(self.busy or self.idle)

    @property
    def usual(self) -> float:
        """The median on the machine as it is."""
        return median(self.idle or self.busy)


@contextmanager
def contenders(ours: Mapping[str, str], peers: Sequence[Peer] | None = None) -> Generator[list[Contender]]:
    """Start the contenders: ours, given as name and script with arguments, then these peers, or all there are."""
    wanted = [(name, sys.executable, script) for name, script in ours.items()]
    wanted += [(peer.name, str(peer.python), peer.script) for peer in (installed() if peers is None else peers)]
    with ExitStack() as stack:
        started = [stack.enter_context(_process(*each)) for each in wanted]
        yield [contender for contender in started if _ready(contender)]


def interleaved(found: Sequence[Contender], job: str, n: int, *, busy: int = 0, idle: int = 0) -> dict[str, Samples]:
    """Every contender that can do the job, measured in turns: so many rounds on one core kept awake, so many free."""
    able = [(contender, Samples()) for contender in found if job in contender.jobs]
    able = [each for each in able if _measured(each[0], job, n, [])]  # the first time pays for caches
    with _spinning() if busy and ONE else nullcontext():
        for _ in range(busy):
            able = [each for each in able if _confined(each[0], job, n, each[1].busy)]
    for _ in range(idle):
        able = [each for each in able if _measured(each[0], job, n, each[1].idle)]
    return {contender.name: samples for contender, samples in able}


def _confined(contender: Contender, job: str, n: int, where: list[float]) -> bool:
    """As `_measured`, with all of the contender on one core."""
    _confine(contender.process.pid, ONE)
    try:
        return _measured(contender, job, n, where)
    finally:
        _confine(contender.process.pid, ALL)


def _measured(contender: Contender, job: str, n: int, where: list[float]) -> bool:
    """Measure once; a contender that fails is left out from then on."""
    try:
        where.extend(contender.measure(job, n))
    except (RuntimeError, OSError) as e:
        print(f"{e}: left out of {job}", file=sys.stderr)
        return False
    return True


@contextmanager
def _process(name: str, python: str, script: str) -> Generator[Contender]:
    file, *args = script.split()
    command = [python, str(HERE / "contenders" / f"{file}.py"), *args]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment()) as process:
        try:
            yield Contender(name, process, ())
        finally:
            if process.stdin is not None:
                process.stdin.close()  # a contender ends when nobody can ask it any more


def _ready(contender: Contender) -> bool:
    try:
        contender.jobs = tuple(str(job) for job in contender.answer()["jobs"])
    except RuntimeError as e:
        print(f"{e} before it was ready: it is left out", file=sys.stderr)
        return False
    return True


@contextmanager
def _spinning() -> Generator[None]:
    """Keep the one core awake with work of idle priority: it yields at once, but the core need not be woken."""
    spinner = subprocess.Popen([sys.executable, "-I", "-S", "-c", SPINNER])
    os.sched_setaffinity(spinner.pid, ONE)
    try:
        yield
    finally:
        spinner.kill()
        spinner.wait()


def _confine(pid: int, cores: set[int]) -> None:
    """Put a process, its threads and all their descendants on these cores."""
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        try:
            os.sched_setaffinity(int(thread.name), cores)
            children = (thread / "children").read_text().split()
        except OSError:
            continue  # it ended meanwhile
        for child in children:
            _confine(int(child), cores)
