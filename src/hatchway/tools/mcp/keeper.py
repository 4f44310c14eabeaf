"""The parent of one server's command, run as a program of its own: when that ends, everything that came of it does.

A child subreaper: what the server forks, daemonises or moves to another session stays below this process. Told by the
host over a socket: `t` hands SIGTERM on, `k` or the end of file means kill; so a host that is killed leaves nothing.
Tells it `started`, or `failed` and why. Ends as the server did. Standard library only, and little of that: each server
has one. Usage: keeper.py FD COMMAND…
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time

_PR_SET_CHILD_SUBREAPER = 36
_TICK_SECONDS = 5.0
"""Between two looks at whether the host still lives."""
_GIVE_UP_SECONDS = 2.0
"""A process of another user cannot be killed; its time is not ours to wait for."""


def main(fd: int, command: list[str]) -> None:
    """Start the command with this process's streams, and watch it to its end."""
    os.set_inheritable(fd, False)
    control = socket.socket(fileno=fd)
    wakeup, written = os.pipe()
    os.set_blocking(written, False)
    signal.set_wakeup_fd(written)
    signal.signal(signal.SIGCHLD, _wake)
    _adopt()
    try:
        defaults = (signal.SIGPIPE, signal.SIGXFSZ)  # Python ignores them, and what is ignored is inherited
        server = os.posix_spawnp(command[0], command, os.environ, setpgroup=0, setsigdef=defaults)
    except (OSError, ValueError) as e:
        control.sendall(f"failed {getattr(e, 'strerror', None) or e}".encode())
        return
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)  # the server hangs up when it closes them, not when we do
    control.sendall(b"started")
    status = _watched(server, control, wakeup)
    _kill_all()
    _end_as(status)


def _wake(number: int, frame: object) -> None:
    """The byte that the signal writes is enough."""


def _adopt() -> None:
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _watched(server: int, control: socket.socket, wakeup: int) -> int:
    """How the server ended; killed is how it ends when the host says so or is gone."""
    host = os.getppid()
    while os.getppid() == host:  # a fork of the host may hold the socket open
        ready, _, _ = select.select([control, wakeup], [], [], _TICK_SECONDS)
        if wakeup in ready:
            os.read(wakeup, 4096)
            if (status := _reaped(server)) is not None:
                return status
        if control in ready and control.recv(1) != b"t":
            return signal.SIGKILL
        if control in ready:
            _kill(server, signal.SIGTERM, is_group=True)
    return signal.SIGKILL


def _reaped(server: int) -> int | None:
    """Take leave of the dead; the status of the server if it is among them."""
    found = None
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            found = ended[1] if ended[0] == server else found
    except ChildProcessError:
        pass
    return found


def _kill_all() -> None:
    deadline = time.monotonic() + _GIVE_UP_SECONDS
    while time.monotonic() < deadline:
        for pid in _below(os.getpid()):
            _kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)


def _below(pid: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parents.setdefault(int(file.read().rpartition(b")")[2].split()[1]), []).append(int(name))
            except OSError:
                pass  # it is gone
    found: list[int] = []
    todo = [pid]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found


def _kill(pid: int, number: int, *, is_group: bool = False) -> None:
    try:
        os.killpg(pid, number) if is_group else os.kill(pid, number)
    except OSError:
        pass  # gone, or not ours


def _end_as(status: int) -> None:
    if os.WIFSIGNALED(status):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
