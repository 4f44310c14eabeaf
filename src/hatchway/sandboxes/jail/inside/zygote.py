"""The zygote: a warm interpreter behind its own namespaces that forks one sealed child per order."""

from __future__ import annotations

import array
import errno
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from typing import Any

from . import child, idmap, kernel, memory, native, policy, root
from .seal import Seal

INSIDE_ID = 1000
MAX_FDS = 8
ALL_NAMESPACES = kernel.NEWUSER | kernel.NEWNS | kernel.NEWPID | kernel.NEWNET | kernel.NEWIPC | kernel.NEWUTS


def start(launch: dict[str, Any], control: socket.socket, uid: int) -> int:
    """Start the zygote and give its pid, once its namespaces are there. The host is told why if they are not."""
    asked, answer = socket.socketpair()
    helper = os.fork()
    if not helper:
        try:
            asked.close()
            warm_up(launch)  # while the files are in sight
            _enter_namespaces(launch, control, answer, uid)
        except BaseException as e:
            _say_failed(control, e)
        finally:
            os._exit(0)
    answer.close()
    with asked:
        told = asked.recv(64)
        if told == b"maps":  # only root may write a map of a uid that is not its own
            own = f"{INSIDE_ID} {uid} 1"
            idmap.write_maps(helper, own, own, "/proc")
            asked.send(b"done")
            told = asked.recv(64)
        _, status = os.waitpid(helper, 0)
        if not told:
            sys.exit(shell_code(status) or 1)  # the helper has told the host why, unless it was killed
        asked.send(b"go")  # only now are we the zygote's parent
    return int(told)


def shell_code(status: int) -> int:
    """How a process ended, as a shell says it: past 128 it was killed by a signal."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _enter_namespaces(launch: dict[str, Any], control: socket.socket, keeper: socket.socket, uid: int) -> None:
    if kernel.has_uids_to_give():
        os.setgroups([])
        kernel.unshare(kernel.NEWNS)  # as root: it may grant what the jail's own uid could not open
        root.build(launch, uid)
        kernel.unshare(ALL_NAMESPACES)
        keeper.send(b"maps")
        keeper.recv(64)
        os.setresgid(INSIDE_ID, INSIDE_ID, INSIDE_ID)
        os.setresuid(INSIDE_ID, INSIDE_ID, INSIDE_ID)  # no uid 0 is mapped, so the capabilities stay
    elif kernel.is_only_root():
        raise PermissionError(errno.EPERM, kernel.ONLY_ROOT)
    else:
        own_uid, own_gid = os.geteuid(), os.getegid()
        kernel.unshare(ALL_NAMESPACES)
        idmap.write_maps(os.getpid(), f"{INSIDE_ID} {own_uid} 1", f"{INSIDE_ID} {own_gid} 1", "/proc")
        root.build(launch, None)
    pid = os.fork()
    if pid:
        keeper.send(b"%d" % pid)
    else:
        try:
            if keeper.recv(64) == b"go":
                keeper.close()
                _be_zygote(launch, control)
        except BaseException as e:
            _say_failed(control, e)
        finally:
            os._exit(0)


def _be_zygote(launch: dict[str, Any], control: socket.socket) -> None:
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # /proc/1 of every child is a process that shares this memory: close it
    os.setsid()
    # A handler of ours would run in the sleepers too, which share this memory and take signals of the code.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    socket.sethostname("jail")
    root.enter()
    if not launch["is_command"]:
        child.prepare()
    gc.collect()
    memory.fill_holes()  # what the children make shall lie together
    memory.fill_large_holes()
    gc.freeze()
    gc.disable()  # a collection would write to pages that all children share
    Zygote(launch, control).serve()


def warm_up(launch: dict[str, Any]) -> None:
    """Import what the code is likely to use; nothing that was granted as a package."""
    sys.path[:] = launch["sys_path"]
    os.environ.clear()
    os.environ.update(launch["environment"])
    _import_all(launch["preload"])
    if launch["guest"]:
        memory.fill_holes()  # and so shall what every action uses
        _import_all(launch["guest"])
    if launch["denied"]:
        importlib.import_module("_hatchway_jail.warden")
    sys.dont_write_bytecode = True  # from here on the imports are the code's, and so is the space they take
    for has_memfd in (False, True):
        policy.system_calls(has_memfd, bool(launch["proxy_port"]), launch["is_command"])  # once, for all children


def _import_all(names: list[str]) -> None:
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            pass  # an interpreter built without it


class Zygote:
    """Takes orders from the host until its end of the socket closes."""

    def __init__(self, launch: dict[str, Any], control: socket.socket, seal: Seal | None = None) -> None:
        self._launch = launch
        self._control = control
        self._own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self._alive: dict[int, tuple[int, int, int, int]] = {}  # pidfd -> number, pid, pid and pidfd of its init
        self._slots: dict[int, int] = {}  # pidfd -> pid
        self._poll = select.epoll()
        self._seal = seal  # made before the first copy: what a copy makes, each of its children has to hold too

    def serve(self) -> None:
        """Fork children and tell the host how they ended."""
        self._poll.register(self._control, select.EPOLLIN)
        _say(self._control, {"ready": True})
        while True:
            for fd, _ in self._poll.poll():
                if fd != self._control.fileno():
                    self._bury(fd)
                elif not self._take_order():
                    return

    def _take_order(self) -> bool:
        order, fds = receive(self._control)
        if order is None:
            return False
        try:
            seal = self._seal
            if seal is None or not seal.fits(order):
                seal = self._seal = Seal(self._launch, order)
            if "slot" in order:
                self._open_slot(fds)
            else:
                self._spawn(order, fds, seal)
        except OSError as e:
            if "slot" in order:
                os.write(fds[0], json.dumps({"failed": str(e), "errno": e.errno}).encode())
            else:
                _say(self._control, {"died": order.get("number"), "status": None, "reason": str(e), "errno": e.errno})
        finally:
            for fd in fds:
                os.close(fd)
        return True

    def _spawn(self, order: dict[str, Any], fds: list[int], seal: Seal) -> None:
        kernel.unshare(kernel.NEWPID)
        try:
            init = native.clone_sleeper()
            try:
                init_pidfd = os.pidfd_open(init)
                seal.aim(order, fds)
                pid = kernel.fork()
            except OSError:
                os.kill(init, signal.SIGKILL)  # nobody else knows of it
                _reaped(init)
                raise
            if not pid:
                child.run(self._launch, order, seal)
        finally:
            kernel.setns(self._own_pids, kernel.NEWPID)
        pidfd = os.pidfd_open(pid)
        self._alive[pidfd] = (order["number"], pid, init, init_pidfd)
        self._poll.register(pidfd, select.EPOLLIN)

    def _open_slot(self, fds: list[int]) -> None:
        """A copy of the zygote that sits in a cgroup, so that its children are born there.

        To move a process between cgroups the kernel waits until all cores have passed a quiet state: milliseconds,
        and one process at a time on the whole machine.
        """
        pid = kernel.fork()
        if not pid:
            try:
                control, entrance = fds
                os.write(entrance, b"0")
                kernel.close_all_but({0, 1, 2, control})
                Zygote(self._launch, socket.socket(fileno=control), self._seal).serve()
            finally:
                os._exit(0)
        pidfd = os.pidfd_open(pid)
        self._slots[pidfd] = pid
        self._poll.register(pidfd, select.EPOLLIN)

    def _bury(self, pidfd: int) -> None:
        """Reap a child, kill what it left behind, tell the host."""
        self._poll.unregister(pidfd)
        os.close(pidfd)
        if pidfd in self._slots:
            _reaped(self._slots.pop(pidfd))
            return
        number, pid, init, init_pidfd = self._alive.pop(pidfd)
        status, usage = _reaped(pid)
        try:
            signal.pidfd_send_signal(init_pidfd, signal.SIGKILL)
        except ProcessLookupError:
            pass  # the host killed it first
        os.close(init_pidfd)
        _reaped(init)  # returns when the whole pid namespace is empty
        _say(self._control, {"died": number, "status": status, "cpu": usage})


def _reaped(pid: int) -> tuple[int, float]:
    _, status, usage = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime


def _say_failed(control: socket.socket, error: BaseException) -> None:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else repr(error)
    is_grant = isinstance(error, root.GrantRefused)
    _say(control, {"failed": reason, "errno": getattr(error, "errno", None) or 0, "is_grant": is_grant})


def _say(control: socket.socket, message: dict[str, Any]) -> None:
    try:
        control.send(json.dumps(message).encode())
    except OSError:
        pass  # the host is gone; the end of file says so next


def receive(control: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """One message and the file descriptors that came with it; None at the end."""
    data, ancillary, _, _ = control.recvmsg(1 << 16, socket.CMSG_SPACE(MAX_FDS * 4), socket.MSG_CMSG_CLOEXEC)
    fds = array.array("i")
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
    return (json.loads(data) if data else None), list(fds)
