"""The first process of a container: stands between the engine's stdin and stdout and the guest, and outlives it.

The guest gets pipes of its own. What comes out of them goes to stdout in frames (`kind`, four bytes of length, body),
output before the message that was sent after it; what comes in on stdin is taken apart likewise. The guest is a child:
when it dies, or the host says so, everything else in the container is killed, the files in `/output` are handed out,
and the container ends with this process.
"""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import sys
import time
from collections.abc import Container
from typing import Any

from . import cgroup, files

CHUNK = 1 << 16
TICK_MS, SLOWEST_TICK_MS = 100, 1000  # between two looks at what the code takes
WORTH_TELLING = 0.02  # seconds of CPU
ENDING = b'{"type":"execution_'  # before it the host wants to know what the action took
CHANNEL, OUTPUT, ERROR, USAGE, FILE, DATA, FILES_END, READY, END = b"C", b"O", b"E", b"U", b"F", b"D", b"Z", b"R", b"X"


def send(kind: bytes, body: bytes = b"") -> None:
    """One frame to the host; blocks when the host does not read."""
    data = memoryview(kind + struct.pack(">I", len(body)) + body)
    while data:
        data = data[os.write(1, data) :]


def tell(kind: bytes, told: Any) -> None:
    """One frame of JSON."""
    send(kind, json.dumps(told).encode("ascii"))


class Relay:
    """Serves until the guest is dead and told of."""

    def __init__(self, guest: int, to_guest: int, channel: int, stdout: int, stderr: int) -> None:
        self._guest = guest
        self._to_guest = to_guest
        self._pipes = {stdout: OUTPUT, stderr: ERROR, channel: CHANNEL}  # what was printed first goes out first
        self._unsent = bytearray()
        self._half = bytearray()
        self._status: int | None = None
        self._is_busy = False
        self._told_cpu = 0.0
        self._tick = TICK_MS
        self._ooms = cgroup.oom_kills()
        self._own_cpu = cgroup.cpu_seconds()
        self._folder = files.Folder("/output")
        self._child_died = _wake_on_child()
        for fd in (to_guest, channel, stdout, stderr):
            os.set_blocking(fd, False)
        self._poll = select.poll()
        for fd in (0, channel, stdout, stderr, self._child_died):
            self._poll.register(fd, select.POLLIN)

    def run(self) -> None:
        """Never returns."""
        tell(READY, {})
        while self._status is None:
            ready = dict(self._poll.poll(self._tick if self._is_busy else None))
            if self._child_died in ready:
                os.read(self._child_died, 4096)
                self._reap()
            if 0 in ready:
                self._take()
            if self._to_guest in ready:
                self._pass_on(b"")
            self._empty_pipes(ready)
            if self._is_busy and not ready:
                self._look()
        self.end({})

    def end(self, wanted: dict[str, int] | None) -> None:
        """Kill everything, hand out what is left, and end the container."""
        self._kill_all()
        self._empty_pipes(self._pipes, is_end=True)
        if wanted is not None:
            self._folder.hand_out(wanted, tell, send)
        self._tell_end()
        os._exit(0)

    def _tell_end(self) -> None:
        is_over = cgroup.oom_kills() > self._ooms
        tell(END, {"status": self._status, "oom": is_over, "cpu": self._cpu(), "peak": cgroup.peak_bytes()})

    def _take(self) -> None:
        """What the host says: a message for the guest, a wish for the files, or the end."""
        data = os.read(0, CHUNK)
        if not data:
            os._exit(0)  # nobody is there any more
        self._half += data
        while len(self._half) >= 5:
            size = struct.unpack_from(">I", self._half, 1)[0]
            if len(self._half) < 5 + size:
                break
            kind, body = bytes(self._half[:1]), bytes(self._half[5 : 5 + size])
            del self._half[: 5 + size]
            if kind == CHANNEL:
                self._is_busy = True
                self._tick = TICK_MS
                self._pass_on(body)
            elif kind == FILE:
                self._folder.hand_out(json.loads(body), tell, send)
            else:
                self.end(json.loads(body) if body else None)

    def _pass_on(self, body: bytes) -> None:
        """To the guest without ever waiting for it: it may be waiting for us to take what it prints."""
        self._unsent += body
        try:
            while self._unsent:
                del self._unsent[: os.write(self._to_guest, self._unsent[:CHUNK])]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent.clear()  # it closed its end, and is about to die or be killed
        if self._unsent:
            self._poll.register(self._to_guest, select.POLLOUT)
            self._poll.modify(0, 0)
        else:
            try:
                self._poll.unregister(self._to_guest)
            except KeyError:
                pass
            self._poll.modify(0, select.POLLIN)

    def _empty_pipes(self, ready: Container[int], is_end: bool = False) -> None:
        """Hand on what came out of the guest: a message last, so that everything printed before it goes out before."""
        while any(fd in ready for fd in self._pipes):
            came = {fd: self._read(fd) for fd in reversed(tuple(self._pipes))}  # the messages are read first
            for fd, kind in tuple(self._pipes.items()):
                data = came[fd]
                if data:
                    if kind == CHANNEL and ENDING in data:
                        tell(USAGE, {"cpu": self._cpu(), "peak": cgroup.peak_bytes()})
                    send(kind, data)
                elif data is not None:
                    self._poll.unregister(fd)
                    del self._pipes[fd]
            if not is_end or not any(came.values()):
                return

    def _read(self, fd: int) -> bytes | None:
        """What a pipe holds, all of it unless the code made it larger; None for nothing, empty at its end."""
        try:
            return os.read(fd, CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def _look(self) -> None:
        """Tell the host what the code has burnt; end it when a part of it was killed for want of memory."""
        if cgroup.oom_kills() > self._ooms:
            self._status = -signal.SIGKILL
            return
        cpu = self._cpu()
        if cpu - self._told_cpu < WORTH_TELLING:
            self._tick = min(2 * self._tick, SLOWEST_TICK_MS)
            return
        self._told_cpu, self._tick = cpu, TICK_MS
        tell(USAGE, {"cpu": cpu, "peak": cgroup.peak_bytes()})

    def _cpu(self) -> float:
        return max(0.0, cgroup.cpu_seconds() - self._own_cpu - time.process_time())

    def _kill_all(self) -> None:
        pause = 0.0005
        while True:
            try:
                os.kill(-1, signal.SIGKILL)  # everybody but this process
            except ProcessLookupError:
                pass
            if not self._reap():
                return
            time.sleep(pause)
            pause = min(2 * pause, 0.02)

    def _reap(self) -> bool:
        """Take leave of dead children, ours and the orphans; whether any child is left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self._guest and self._status is None:
                    self._status = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        except ChildProcessError:
            return False


def _wake_on_child() -> int:
    read_fd, write_fd = os.pipe()
    for fd in (read_fd, write_fd):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the code could send it, and Python would end for it
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return read_fd


def hide() -> None:
    """Keep the code, which has the same uid, from looking into this process: prctl(PR_SET_DUMPABLE)."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        sys.stderr.write("the relay cannot hide its memory from the code\n")
