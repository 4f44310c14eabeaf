"""Randomness and time of an action that can be run again: drawn from a seed, and written down as they are read."""

from __future__ import annotations

import datetime
import hashlib
import time
from collections.abc import Sequence
from typing import Any

import pydantic_monty as pm

from hatchway.sandboxes.monty import system

_CLOCKS = {"time.monotonic": time.monotonic, "time.perf_counter": time.perf_counter}


class Repeat:
    """Answers what code asks of clocks and of the system's randomness.

    Args:
        seed: What it draws from; derived from the run's own.
        script: What was read before, a list per call the code then made.
        drawn: How often it drew before a dump.
        reads: What it had read before a dump, since its last call.
        is_again: The code is run again: each call tells its line.
    """

    def __init__(
        self,
        seed: bytes,
        script: Sequence[Sequence[float]] = (),
        *,
        drawn: int = 0,
        reads: Sequence[float] = (),
        is_again: bool = False,
    ) -> None:
        self.seed, self.drawn, self.is_again = seed, drawn, is_again
        self._script = iter(script)
        self._before = iter(next(self._script, ()))
        self.reads = list(reads)
        """What was read since the last call."""

    @property
    def policy(self) -> pm.OSPolicy:
        """Clocks stop at the host; Monty's own generator starts from the seed."""
        return {**system.POLICY, "datetime": "call_host", "random_start": {"seed": self.seed}}

    def answer(self, stop: pm.FunctionSnapshot) -> pm.ExternalResult | None:
        """The answer to a stop at a clock or at `os.urandom`; None for any other."""
        match str(stop.function_name):
            case "time.time":
                which = str(stop.args[0]) if stop.args else ""
                return {"return_value": self._read(_CLOCKS.get(which, time.time)())}
            case "datetime.now":
                zone: Any = stop.args[0] if stop.args else None
                return {"return_value": datetime.datetime.fromtimestamp(self._read(time.time()), zone)}
            case "date.today":
                return {"return_value": datetime.date.fromtimestamp(self._read(time.time()))}
            case "os.urandom":
                return system.random_bytes(stop.args[0], self._drawn_bytes)
            case _:
                return None

    def next_call(self) -> list[float]:
        """What was read since the last call; go on to the reads before the next one."""
        reads, self.reads = self.reads, []
        self._before = iter(next(self._script, ()))
        return reads

    def _read(self, now: float) -> float:
        value = next(self._before, now)
        self.reads.append(value)
        return value

    def _drawn_bytes(self, size: int) -> bytes:
        self.drawn += 1
        return hashlib.shake_256(b"urandom %s %d" % (self.seed, self.drawn)).digest(size)
