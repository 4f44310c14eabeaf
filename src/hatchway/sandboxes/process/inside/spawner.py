"""Forks guests on demand: `python -I -S spawner.py <socket fd> <guest folder>`, exec'd clean, with an empty environment.

The host asks by one line of JSON: `{"id", "cwd", "env"}` with five descriptors (channel read and write, stdout,
stderr, control) or `{"kill": id}`. Its end of file ends everything. A child subreaper like the supervisors: if the
code kills its supervisor, what it leaves falls to this process and is killed. Standard library of Python 3.9 only.
"""

import array
import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FDS = 5
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
WARMED = (
    "asyncio", "base64", "collections", "concurrent.futures.thread", "contextlib", "copy", "dataclasses", "datetime", "decimal", "enum",
    "functools", "inspect", "io", "itertools", "json", "linecache", "math", "operator", "random", "re", "resource",
    "string", "textwrap", "threading", "time", "traceback", "types", "typing", "uuid",
)  # fmt: skip


class Spawner:
    """Takes the host's requests; one supervisor process per guest."""

    def __init__(self, requests, supervisors):
        self._requests = requests
        self._module = supervisors
        self._supervised = {}
        self._half = b""
        self._fds = []
        self._host = os.getppid()
        self._wakeup = supervisors._wake_on_child()
        self._lifeline, self._held = os.pipe()
        self._poll = select.poll()
        self._poll.register(requests, select.POLLIN)
        self._poll.register(self._wakeup, select.POLLIN)

    def run(self):
        """Serve until the host is gone; then leave nothing."""
        while os.getppid() == self._host:
            for fd, _ in self._poll.poll(1000):
                if fd == self._wakeup:
                    os.read(fd, 4096)
                    self._reap()
                elif not self._take_requests():
                    return self._end()
        return self._end()

    def _take_requests(self):
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
                fds, self._fds = self._fds[:FDS], self._fds[FDS:]
                self._spawn(request, fds)
        return bool(data)

    def _spawn(self, request, fds):
        pid = os.fork()
        if pid == 0:
            self._supervise(request, fds)
        *guests, control = fds
        for fd in guests:
            os.close(fd)
        self._supervised[pid] = (request["id"], control, request["cwd"])

    def _supervise(self, request, fds):
        """In the forked process: become a supervisor with a guest below it. Never returns."""
        status = 1
        try:
            for fd in (self._requests.fileno(), self._wakeup, self._held, *(s[1] for s in self._supervised.values())):
                os.close(fd)
            os.setsid()
            prctl(PR_SET_CHILD_SUBREAPER, 1)
            *guests, control = fds
            supervisor = os.getpid()
            guest = os.fork()
            if guest == 0:
                os.close(control)
                os.close(self._lifeline)
                be_guest(request, guests, supervisor)
            for fd in guests:
                os.close(fd)
            self._module.Supervisor(control, self._lifeline, guest).run()
            self._module.remove(request["cwd"])
            status = 0
        finally:
            os._exit(status)

    def _kill_supervisor(self, number):
        for pid, (known, _, _) in self._supervised.items():
            if known == number:
                self._module._kill(pid)

    def _reap(self):
        died = []
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid in self._supervised:
                    died.append((*self._supervised.pop(pid), status))
        except ChildProcessError:
            pass
        if any(status for *_, status in died):
            self._kill_strangers()
        for _, control, cwd, status in died:
            if status:
                self._module._tell(control, "dead %d -" % signal.SIGKILL)
                self._module.remove(cwd)
            os.close(control)

    def _kill_strangers(self):
        """What a killed supervisor leaves becomes a child of this process: it is no supervisor, so it must die."""
        tree = self._module.tree
        calm = 0
        while calm < 2:  # the kernel may leave out a child while another one exits: look twice
            strangers = [pid for pid in tree.children(os.getpid()) if pid not in self._supervised]
            calm = calm + 1 if not strangers else 0
            for pid in strangers:
                for below in tree.descendants(pid):
                    self._module._kill(below)
                self._module._kill(pid)
            for pid in strangers:
                try:
                    os.waitpid(pid, 0)
                except ChildProcessError:
                    pass

    def _end(self):
        """The host is gone. The supervisors see it too; those that cannot act are helped."""
        deadline = time.monotonic() + 1.0
        while self._supervised and time.monotonic() < deadline:
            self._poll.poll(20)
            self._drain_wakeup()
            self._reap()
        for pid in tuple(self._supervised):
            self._module._kill(pid)
        while self._supervised:
            self._reap()
            time.sleep(0.001)

    def _drain_wakeup(self):
        try:
            os.read(self._wakeup, 4096)
        except BlockingIOError:
            pass


def be_guest(request, fds, supervisor):
    """In the guest's process: put everything in its place and serve the host. Never returns."""
    status = 70
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:
            return
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        read_fd, write_fd, stdout, stderr = fds
        null = os.open(os.devnull, os.O_RDONLY)
        for fd, place in ((null, 0), (stdout, 1), (stderr, 2)):
            os.dup2(fd, place, inheritable=True)
        close_all_but(0, 1, 2, read_fd, write_fd)
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["env"])
        sys.argv = [""]
        sys.path.insert(0, request["cwd"])
        serve(read_fd, write_fd)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


def close_all_but(*kept):
    """Nothing of the supervisor's or the spawner's is the code's to hold."""
    for name in os.listdir("/dev/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                pass  # the one the listing itself had


def serve(read_fd, write_fd):
    """Run the guest's interpreter on its channel."""
    from _hatchway_guest.channel import PipeChannel
    from _hatchway_guest.interpreter import Interpreter

    gc.enable()
    Interpreter(PipeChannel(read_fd, write_fd)).serve()


def prctl(option, value):
    """Whether the kernel took the option; False where there is none."""
    try:
        import ctypes

        return ctypes.CDLL(None).prctl(option, int(value), 0, 0, 0) == 0
    except (ImportError, AttributeError, OSError):
        return False


def load(guest):
    """Everything a guest will need, so that forks of this process have it at once."""
    import importlib

    runpy.run_path(os.path.join(guest, "__main__.py"))["load"]()
    for name in (*WARMED, "_hatchway_guest.channel", "_hatchway_guest.interpreter", "_hatchway_guest.loops"):
        try:
            importlib.import_module(name)
        except ImportError:
            pass  # a Python built without it
    sys.path.insert(0, HERE)
    import supervisor

    sys.path.remove(HERE)
    del sys.modules["supervisor"], sys.modules["tree"]
    return supervisor


def main():
    """Serve the host."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    supervisors = load(sys.argv[2])
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    gc.collect()
    gc.freeze()
    gc.disable()
    Spawner(requests, supervisors).run()


if __name__ == "__main__":
    main()
