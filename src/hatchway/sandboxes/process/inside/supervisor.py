"""The parent of one guest: holds it to its limits and, at the end, kills everything that came of it.

A child subreaper: whatever the code forks, daemonises or moves to another session stays below this process, and when
this process has no child left, nothing is left.

Told by the host, one line each: `watch <processes> <memory bytes>`, `kill`; its end of file means kill as well. After
the end `remove` or the end of file says that the folder is no longer needed.
Tells the host: `started <own pid> <guest pid>`; at the end `killing <limit, orphaned or ->`, so that it knows somebody
acts, and `dead <wait status> <CPU milliseconds>`.
"""

from __future__ import annotations

import os
import select
import time
from typing import Protocol

from . import kernel, tree

BUSY_SECONDS, QUIET_SECONDS = 0.02, 0.2  # between two looks at the guest's processes


class Answers(Protocol):
    """Does for the guest what it is kept from."""

    def fileno(self) -> int:
        """What becomes readable when the guest asks."""
        ...

    def answer(self) -> None:
        """Answer the next question."""
        ...


class Supervisor:
    """Runs until its guest and all its descendants are dead.

    Args:
        control: The socket to the host.
        lifeline: Readable once the spawner is dead.
        guest: The guest's process, a child of this one.
        wakeup: Readable when a child has died.
        told: What the host has said already.
        answers: Who answers the guest's questions, if it may have any.
    """

    def __init__(
        self,
        control: int,
        lifeline: int,
        guest: int,
        wakeup: int,
        told: bytes = b"",
        answers: Answers | None = None,
    ) -> None:
        self._control, self._lifeline = control, lifeline
        self._guest = guest
        self._status: int | None = None
        self._cpu = 0
        self._reason = ""
        self._limits: tuple[int, int] | None = None
        self._half = told
        self._pause = BUSY_SECONDS
        self._looked = time.monotonic()
        self._seen: list[tuple[int, int, int]] = []
        self._wakeup = wakeup
        self._poll = select.poll()
        self._answers = answers
        for fd in (control, lifeline, wakeup, *([answers.fileno()] if answers else [])):
            self._poll.register(fd, select.POLLIN)

    def run(self) -> None:
        """Watch the guest until it dies or is to die; then leave nothing of it."""
        kernel.tell(self._control, f"started {os.getpid()} {self._guest}")
        is_wanted = self._take_lines()
        while is_wanted:
            is_wanted = self._is_wanted()
        kernel.tell(self._control, f"killing {self._reason or '-'}")
        self._kill_all()
        kernel.tell(self._control, f"dead {self._status or 0} {self._cpu}")

    def wait_for_host(self) -> None:
        """Until the host has read what the code left, or is gone."""
        while b"remove" not in self._half:
            waiting = select.poll()
            waiting.register(self._control, select.POLLIN)
            waiting.register(self._lifeline, select.POLLIN)
            ready = [fd for fd, _ in waiting.poll()]
            data = os.read(self._control, 4096) if self._control in ready else b""
            if not data:
                return
            self._half += data

    def _is_wanted(self) -> bool:
        for fd, ready in self._poll.poll(self._milliseconds_to_look()):
            if self._answers and fd == self._answers.fileno():
                self._answer(is_asked=bool(ready & select.POLLIN))
            elif fd == self._wakeup:
                kernel.drain(fd)
                self._reap()
            elif fd == self._lifeline:
                self._reason = "orphaned"
            elif not self._take_orders():
                return False
        if self._limits is not None and self._milliseconds_to_look() == 0:
            self._look(*self._limits)
        return self._status is None and not self._reason

    def _answer(self, *, is_asked: bool) -> None:
        assert self._answers is not None
        if is_asked:
            self._answers.answer()
        else:
            self._poll.unregister(self._answers.fileno())  # everybody who could ask is dead

    def _milliseconds_to_look(self) -> float | None:
        if self._limits is None:
            return None
        return max(0.0, (self._looked + self._pause - time.monotonic()) * 1000)

    def _take_orders(self) -> bool:
        """Whether the host is there and wants the guest alive."""
        data = os.read(self._control, 4096)
        self._half += data
        return self._take_lines() and bool(data)

    def _take_lines(self) -> bool:
        *lines, self._half = self._half.split(b"\n")
        for line in lines:
            word, *numbers = line.split()
            if word == b"kill":
                return False
            tasks, memory = map(int, numbers)
            self._limits, self._pause = (tasks, memory), BUSY_SECONDS
        return True

    def _look(self, most_tasks: int, most_bytes: int) -> None:
        """Hold the code to its limits on processes and memory; look less often at one that does nothing."""
        self._looked = time.monotonic()
        processes = tree.descendants(os.getpid())
        seen = [(pid, s.own_ticks, s.threads) for pid, s in processes.items()]
        self._pause = min(2 * self._pause, QUIET_SECONDS) if seen == self._seen else BUSY_SECONDS
        self._seen = seen
        if sum(s.threads for s in processes.values()) > most_tasks:
            self._reason = "processes"
        elif tree.most_bytes(processes) > most_bytes and (
            tree.bytes_together(processes) > most_bytes  # forks share pages: only now worth the look
        ):
            self._reason = "memory_bytes"

    def _kill_all(self) -> None:
        pause = 0.0002
        while True:
            if self._status is None:
                kernel.kill_group(self._guest)
            for pid in tree.descendants(os.getpid()):
                kernel.kill(pid)
            if not self._reap():
                return
            time.sleep(pause)
            pause = min(2 * pause, 0.01)

    def _reap(self) -> bool:
        """Take leave of dead children; whether any child, dead or alive, is left."""
        try:
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self._guest:
                    self._status, self._cpu = status, int((usage.ru_utime + usage.ru_stime) * 1000)
        except ChildProcessError:
            return False
