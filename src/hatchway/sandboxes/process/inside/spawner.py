"""Forks guests on demand. It was exec'd clean, and its environment holds nothing of the host's.

The host asks by one line of JSON: `{"id", "cwd", "env", "packages"}` with five descriptors (channel read and write,
stdout, stderr, control), `{"id", "programs": true}` with one (control) for a supervisor of other programs, or
`{"kill": id}`. With `"argv"` the guest becomes that program, the first descriptor its stdin; with `"keeps_folder"` its
folder stays until the host has read it. Its end of file ends everything. A child subreaper like the supervisors: if
the code kills its supervisor, what it leaves falls to this process and is killed.
"""

from __future__ import annotations

import array
import gc
import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from . import kernel, tree
from .guest import Seal, be_guest, warm_up
from .programs import Programs
from .scratch import remove_tree
from .supervisor import Answers, Supervisor

FDS = 5
TICK_SECONDS = 1.0  # between two looks at whether the host still lives: a child of its own may hold the socket open
LAST_SECONDS = 1.0  # supervisors that have not ended their guests so long after the host's death are helped


Deputy = Callable[[dict[str, Any], socket.socket], "Answers | None"]
"""`deputy(request, guest)`: who does in the supervisor what a guest is kept from; the guest speaks up first."""


class Supervised(NamedTuple):
    """A supervisor, as its parent knows it."""

    number: int
    control: int
    cwd: str


class Spawner:
    """Takes the host's requests; one supervisor process per guest."""

    def __init__(self, requests: socket.socket, seal: Seal | None, deputy: Deputy | None) -> None:
        self._requests = requests
        self._seal, self._deputy = seal, deputy
        self._supervised: dict[int, Supervised] = {}
        self._half = b""
        self._fds: list[int] = []
        self._host = os.getppid()
        self._wakeup = kernel.wake_on_child()
        self._lifeline, self._held = os.pipe()
        self._poll = select.poll()
        self._poll.register(requests, select.POLLIN)
        self._poll.register(self._wakeup, select.POLLIN)

    def run(self) -> None:
        """Serve until the host is gone; then leave nothing."""
        while os.getppid() == self._host and self._serve_once():
            pass
        self._end()

    def _serve_once(self) -> bool:
        for fd, _ in self._poll.poll(TICK_SECONDS * 1000):
            if fd == self._wakeup:
                kernel.drain(fd)
                self._reap()
            elif not self._take_requests():
                return False
        return True

    def _take_requests(self) -> bool:
        """Whether the host is there."""
        data, ancillary, _, _ = self._requests.recvmsg(1 << 16, socket.CMSG_SPACE(FDS * 4))
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds = array.array("i")
                fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
                self._fds += fds
        *lines, self._half = (self._half + data).split(b"\n")
        for line in lines:
            request = json.loads(line)
            if "kill" in request:
                self._kill_supervisor(request["kill"])
            else:
                many = 1 if "programs" in request else FDS
                fds, self._fds = self._fds[:many], self._fds[many:]
                self._spawn(request, fds)
        return bool(data)

    def _spawn(self, request: dict[str, Any], fds: list[int]) -> None:
        pid = os.fork()
        if pid == 0:
            self._be_supervisor(request, fds)
        *guests, control = fds
        for fd in guests:
            os.close(fd)
        self._supervised[pid] = Supervised(request["id"], control, request.get("cwd", ""))

    def _be_supervisor(self, request: dict[str, Any], fds: list[int]) -> None:
        """In the forked process: become a supervisor, with a guest below it or for other programs. Never returns."""
        status = 1
        try:
            kernel.close_all_but(0, 1, 2, self._lifeline, *fds)
            os.setsid()
            kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
            if "programs" in request:
                Programs(fds[0], self._lifeline).run()
            else:
                self._supervise(request, fds)
            status = 0
        finally:
            os._exit(status)

    def _supervise(self, request: dict[str, Any], fds: list[int]) -> None:
        *guests, control = fds
        me = os.getpid()
        wakeup = kernel.wake_on_child()  # before there is one: a program may end before anybody looks
        ours, theirs = socket.socketpair() if self._deputy else (None, None)
        guest = os.fork()
        if guest == 0:
            be_guest(request, guests, theirs.fileno() if theirs else -1, me, self._seal)
        for fd in guests:
            os.close(fd)
        answers = None
        if self._deputy and ours and theirs:
            theirs.close()
            answers = self._deputy(request, ours)
        supervisor = Supervisor(control, self._lifeline, guest, wakeup, answers=answers)
        supervisor.run()
        if request.get("keeps_folder"):
            supervisor.wait_for_host()
        remove_tree(request["cwd"])

    def _kill_supervisor(self, number: int) -> None:
        for pid, supervised in self._supervised.items():
            if supervised.number == number:
                kernel.kill(pid)

    def _reap(self) -> None:
        killed: list[Supervised] = []
        for pid, status in _dead_children():
            supervised = self._supervised.pop(pid, None)
            if supervised is not None and status:
                killed.append(supervised)
            elif supervised is not None:
                os.close(supervised.control)
        if killed:
            self._kill_strangers()
        for supervised in killed:
            kernel.tell(supervised.control, f"dead {int(signal.SIGKILL)} 0")
            remove_tree(supervised.cwd)
            os.close(supervised.control)

    def _kill_strangers(self) -> None:
        """What a killed supervisor leaves becomes a child of this process: it is no supervisor, so it must die."""
        calm = 0
        while calm < 2:  # the kernel may leave out a child while another one exits: look twice
            strangers = [pid for pid in tree.children(os.getpid()) if pid not in self._supervised]
            calm = calm + 1 if not strangers else 0
            for pid in strangers:
                for below in tree.descendants(pid):
                    kernel.kill(below)
                kernel.kill(pid)
            for pid in strangers:
                try:
                    os.waitpid(pid, 0)
                except ChildProcessError:
                    pass

    def _end(self) -> None:
        """The host is gone. The supervisors see it too; those that cannot act are helped."""
        deadline = time.monotonic() + LAST_SECONDS
        self._poll.unregister(self._requests)
        while self._supervised:
            self._poll.poll(20)
            kernel.drain(self._wakeup)
            self._reap()
            if time.monotonic() > deadline:
                for pid in self._supervised:
                    kernel.kill(pid)


def _dead_children() -> list[tuple[int, int]]:
    dead: list[tuple[int, int]] = []
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return dead
            dead.append((pid, status))
    except ChildProcessError:
        return dead


def main(request_fd: int, guest_folder: str, seal: Seal | None = None, deputy: Deputy | None = None) -> None:
    """Load everything, say so by one byte, and serve the host.

    Args:
        request_fd: The socket to the host.
        guest_folder: The guest's files; empty when only programs are started.
        seal: Puts walls around each guest.
        deputy: Does what they keep it from, as far as it may.
    """
    requests = socket.socket(fileno=request_fd)
    if guest_folder:
        warm_up(guest_folder)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    gc.collect()
    gc.freeze()
    gc.disable()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the host listened to it until now
    requests.send(b".")
    Spawner(requests, seal, deputy).run()
