"""The parent of one guest: holds it to its limits and, at the end, kills everything that came of it.

A child subreaper: whatever the code forks, daemonises or moves to another session stays below this process, and when
this process has no child left, nothing is left. Standard library of Python 3.9 only.

Told by the host, one line each: `watch <processes> <memory bytes>`, `kill`; its end of file means kill as well.
Tells the host: `started <own pid> <guest pid>`, and at the end `dead <wait status> <limit, orphaned or ->`.
"""

import os
import select
import shutil
import signal
import time

import tree

BUSY_SECONDS, QUIET_SECONDS = 0.02, 0.2  # between two looks at the guest's processes


class Supervisor:
    """Runs until its guest and all its descendants are dead."""

    def __init__(self, control, lifeline, guest):
        self._control, self._lifeline = control, lifeline
        self._guest = guest
        self._status = None
        self._reason = ""
        self._most_tasks = self._most_bytes = None
        self._half = b""
        self._pause = BUSY_SECONDS
        self._looked, self._seen = time.monotonic(), None
        self._wakeup = _wake_on_child()
        self._poll = select.poll()
        for fd in (control, lifeline, self._wakeup):
            self._poll.register(fd, select.POLLIN)

    def run(self):
        """Watch the guest until it dies or is to die; then leave nothing of it."""
        _tell(self._control, "started %d %d" % (os.getpid(), self._guest))
        while self._is_wanted():
            pass
        self._kill_all()
        _tell(self._control, "dead %d %s" % (self._status or 0, self._reason or "-"))

    def _is_wanted(self):
        for fd, _ in self._poll.poll(self._milliseconds_to_look()):
            if fd == self._wakeup:
                os.read(fd, 4096)
                self._reap()
                if self._status is not None:
                    return False
            elif fd == self._lifeline:
                self._reason = "orphaned"
            elif not self._take_orders():
                return False
        if self._milliseconds_to_look() == 0:
            self._look()
        return not self._reason

    def _milliseconds_to_look(self):
        if self._most_tasks is None:
            return None
        return max(0, (self._looked + self._pause - time.monotonic()) * 1000)

    def _take_orders(self):
        """Whether the host is there and wants the guest alive."""
        data = os.read(self._control, 4096)
        *lines, self._half = (self._half + data).split(b"\n")
        for line in lines:
            word, *numbers = line.split()
            if word == b"kill":
                return False
            self._most_tasks, self._most_bytes = map(int, numbers)
            self._pause = BUSY_SECONDS
        return bool(data)

    def _look(self):
        """Hold the code to its limits on processes and memory; look less often at one that does nothing."""
        self._looked = time.monotonic()
        processes = tree.descendants(os.getpid())
        seen = [(pid, s.own_ticks, s.threads) for pid, s in processes.items()]
        self._pause = min(2 * self._pause, QUIET_SECONDS) if seen == self._seen else BUSY_SECONDS
        self._seen = seen
        if sum(s.threads for s in processes.values()) > self._most_tasks:
            self._reason = "processes"
        elif sum(s.resident_bytes for s in processes.values()) > self._most_bytes:
            if sum(tree.proportional_bytes(pid) for pid in processes) > self._most_bytes:
                self._reason = "memory_bytes"

    def _kill_all(self):
        pause = 0.0002
        while True:
            _kill_group(self._guest)
            for pid in tree.descendants(os.getpid()):
                _kill(pid)
            if not self._reap():
                return
            time.sleep(pause)
            pause = min(2 * pause, 0.01)

    def _reap(self):
        """Take leave of dead children; whether any child, dead or alive, is left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self._guest:
                    self._status = status
        except ChildProcessError:
            return False


def remove(folder):
    """Delete the guest's folder."""
    shutil.rmtree(folder, ignore_errors=True)


def _tell(control, line):
    try:
        os.write(control, line.encode("ascii") + b"\n")
    except OSError:
        pass  # the host is gone


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _kill_group(pid):
    """Where /proc tells nothing (not Linux), the guest's process group is all that can be killed."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _wake_on_child():
    read_fd, write_fd = os.pipe()
    for fd in (read_fd, write_fd):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return read_fd
