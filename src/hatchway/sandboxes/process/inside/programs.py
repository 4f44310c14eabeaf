"""A supervisor that runs other programs, one after the other; each is dead, with all that came of it, before the next.

Told by the host, one line of JSON with three descriptors (stdin, stdout, stderr): `{"argv", "cwd", "env", "rlimits"}`;
then what a `Supervisor` is told. Tells what a `Supervisor` tells, or `failed` and a JSON string with the reason.
"""

from __future__ import annotations

import array
import json
import os
import select
import socket
import subprocess
from typing import Any

from . import kernel
from .scratch import remove_tree
from .supervisor import Supervisor

FDS = 3


class Programs:
    """Serves the host until it is gone; then leaves nothing.

    Args:
        control: The socket to the host.
        lifeline: Readable once the spawner is dead.
    """

    def __init__(self, control: int, lifeline: int) -> None:
        self._control, self._lifeline = control, lifeline
        self._host = socket.socket(fileno=control)
        self._host.setblocking(True)
        self._wakeup = kernel.wake_on_child()
        self._told = b""
        self._fds: list[int] = []
        self._poll = select.poll()
        for fd in (control, lifeline):
            self._poll.register(fd, select.POLLIN)

    def run(self) -> None:
        """Serve; the folder of the last program goes with the host, should it not have removed it."""
        cwd = ""
        while (order := self._next_order()) is not None:
            cwd = order["cwd"]
            self._run(order)
        remove_tree(cwd)

    def _next_order(self) -> dict[str, Any] | None:
        """The next program to run; None when the host is gone. Late words about the last one are passed over."""
        while True:
            line, end, rest = self._told.partition(b"\n")
            if end:
                self._told = rest
                if line.startswith(b"{"):
                    return json.loads(line)
            elif not self._listen():
                return None

    def _listen(self) -> bool:
        """Whether the host is there."""
        if any(fd == self._lifeline for fd, _ in self._poll.poll()):
            return False
        data, ancillary, _, _ = self._host.recvmsg(1 << 16, socket.CMSG_SPACE(FDS * 4))
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds = array.array("i")
                fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
                self._fds += fds
        self._told += data
        return bool(data)

    def _run(self, order: dict[str, Any]) -> None:
        fds, self._fds = self._fds[:FDS], self._fds[FDS:]
        try:
            process = _started(order, fds)
        except (OSError, ValueError) as e:
            kernel.tell(self._control, f"failed {json.dumps(str(e))}")
            return
        finally:
            for fd in fds:
                os.close(fd)
        told, self._told = self._told, b""
        Supervisor(self._control, self._lifeline, process.pid, self._wakeup, told).run()
        process.returncode = 0  # the supervisor has waited for it


def _started(order: dict[str, Any], fds: list[int]) -> subprocess.Popen[bytes]:
    stdin, stdout, stderr = fds
    process = subprocess.Popen(
        order["argv"],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        cwd=order["cwd"],
        env=order["env"],
        start_new_session=True,
    )
    _limit(process.pid, order["rlimits"])
    return process


def _limit(pid: int, rlimits: dict[str, int]) -> None:
    """Set from outside, before the program has read its first line: only a plain spawn is fast."""
    try:
        from resource import RLIM_INFINITY, prlimit
    except ImportError:
        return  # not Linux
    import resource

    for name, value in rlimits.items():
        try:
            most = prlimit(pid, getattr(resource, name))[1]
            value = value if most == RLIM_INFINITY else min(value, most)
            prlimit(pid, getattr(resource, name), (value, value))
        except (OSError, ValueError):
            return  # it is dead already
