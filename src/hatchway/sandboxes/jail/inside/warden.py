"""The warden: opens files in the place of sealed code, so that what is denied by name stays closed.

It stands between the code and whoever started it, behind the same walls (mounts, uid, Landlock), and has no power the
code lacks. A path is looked at once, turned into a handle, and the handle's real name decides: no link, rename or
change of the text meanwhile can change what is opened. Should the code kill it, nothing can be opened any more.
"""

from __future__ import annotations

import array
import ctypes
import errno
import os
import select
import signal
import socket
import stat
import threading
from collections.abc import Callable
from typing import Any

from . import kernel, notify
from .denied import Denied

OPENS = "open openat openat2 creat"
MOVES = "rename renameat renameat2 link linkat"
CHANGES = "truncate unlink unlinkat rmdir symlink symlinkat mkdir mkdirat mknod mknodat"
REAP_SECONDS = 0.2
PASSED_ON = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH,
)  # fmt: skip
"""Signals that whoever started the code sends to what it takes for the code."""
WAITS = 16  # named pipes whose opening waits for the other end
_FDCWD, _NOFOLLOW, _REMOVEDIR, _FOLLOW = -100, 0x100, 0x200, 0x400
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

_libc = ctypes.CDLL(None, use_errno=True)


def enter(rules: dict[str, Any], roots: list[str]) -> None:
    """Go on as the code, below a warden that holds it to the rules. Needs Landlock and no_new_privs set before."""
    ours, theirs = socket.socketpair()
    pid = kernel.fork()
    if pid:
        try:
            theirs.close()
            _be_warden(pid, ours, rules, roots)
        finally:
            os._exit(1)
    ours.close()
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    names = f"{OPENS} {MOVES} {CHANGES}" if rules["deny_write"] else f"{OPENS} {MOVES}"
    listener = notify.ask_for(names)
    theirs.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))])
    os.close(listener)
    theirs.recv(1)
    theirs.close()


def _be_warden(code: int, channel: socket.socket, rules: dict[str, Any], roots: list[str]) -> None:
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # its memory is nobody's business
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)  # Yama lets it look at descendants only: let none leave
    for number in PASSED_ON:
        signal.signal(number, lambda given, _frame: os.kill(code, given))
    for number in (signal.SIGTSTP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    _, ancillary, _, _ = channel.recvmsg(1, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
    fds = array.array("i")
    fds.frombytes(ancillary[0][2])
    os.umask(0)
    kernel.close_all_but({0, 1, 2, fds[0], channel.fileno()})
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)  # else it would keep the code's pipes open
    channel.send(b"x")
    channel.close()
    Warden(fds[0], Denied(rules["deny_read"], roots), Denied(rules["deny_write"], roots)).serve(code)


class Warden:
    """Answers until the code is dead, and then ends as the code did."""

    def __init__(self, listener: int, deny_read: Denied, deny_write: Denied) -> None:
        self._listener = listener
        self._no_read, self._no_write = deny_read, deny_write
        self._waits = threading.Semaphore(WAITS)
        self._acts: dict[str, Callable[[notify.Asked], None]] = {
            **dict.fromkeys(("open", "openat", "creat"), self._open),
            **dict.fromkeys(CHANGES.split(), self._change),
            **dict.fromkeys(("rename", "renameat", "renameat2"), self._rename),
            **dict.fromkeys(("link", "linkat"), self._link),
        }

    def serve(self, code: int) -> None:
        """Never returns."""
        own = os.pidfd_open(code)
        poll = select.poll()
        poll.register(own, select.POLLIN)
        poll.register(self._listener, select.POLLIN)
        while True:
            ready = dict(poll.poll(REAP_SECONDS * 1000))
            if ready.get(self._listener, 0) & select.POLLIN:
                self._answer()
            if own in ready:
                _end_as(code)
            elif not ready:
                _reap_orphans(code)

    def _answer(self) -> None:
        asked = notify.received(self._listener)
        if asked is None:
            return
        try:
            act = self._acts.get(asked.name)
            if act is None:
                raise OSError(errno.ENOSYS, "openat2")  # callers fall back to openat
            act(asked)
        except OSError as e:
            notify.answer(self._listener, asked, e.errno or errno.EACCES)
        except (ValueError, UnicodeError, RuntimeError):
            notify.answer(self._listener, asked, errno.EACCES)

    def _open(self, asked: notify.Asked) -> None:
        values = asked.arguments
        base, path = self._path(asked, *((values[0], values[1]) if asked.name == "openat" else (None, values[0])))
        flags, mode = _flags(asked)
        try:
            fd = self._opened(asked, base, path, flags, mode)
        finally:
            _close(base)
        if fd is not None:
            notify.answer_with(self._listener, asked, fd, flags)
            os.close(fd)

    def _opened(self, asked: notify.Asked, base: int | None, path: str, flags: int, mode: int) -> int | None:
        """The file; None when somebody waits for it and will answer."""
        is_new = flags & os.O_CREAT and flags & os.O_EXCL
        try:
            handle = _handle(path, base, is_followed=not (is_new or flags & os.O_NOFOLLOW))
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
            return self._created(asked, base, path, flags, mode)
        try:
            if is_new:
                raise FileExistsError(errno.EEXIST, path)
            self._check_open(_real(handle), flags)
            kind = os.fstat(handle).st_mode
            if stat.S_ISLNK(kind):
                if not flags & os.O_PATH:
                    raise OSError(errno.ELOOP, path)
                return os.dup(handle)
            if flags & os.O_PATH:
                return _reopened(handle, os.O_PATH)
            if stat.S_ISFIFO(kind) and not flags & os.O_NONBLOCK:
                return self._opened_later(asked, os.dup(handle), flags)
            return _reopened(handle, flags & ~(os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW), _masked(asked.pid, mode))
        finally:
            os.close(handle)

    def _created(self, asked: notify.Asked, base: int | None, path: str, flags: int, mode: int) -> int:
        parent, name, real = _entry(base, path)
        try:
            self._check_open(real, flags)
            return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, _masked(asked.pid, mode), dir_fd=parent)
        finally:
            os.close(parent)

    def _opened_later(self, asked: notify.Asked, handle: int, flags: int) -> None:
        """A named pipe opens when its other end does: that may need another answer of ours first."""
        if not self._waits.acquire(blocking=False):
            os.close(handle)
            raise OSError(errno.EAGAIN, "too many pipes wait")

        def wait() -> None:
            try:
                fd = _reopened(handle, flags & ~(os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW))
                notify.answer_with(self._listener, asked, fd, flags)
                os.close(fd)
            except OSError as e:
                notify.answer(self._listener, asked, e.errno or errno.EACCES)
            finally:
                os.close(handle)
                self._waits.release()

        threading.Thread(target=wait, daemon=True).start()

    def _check_open(self, real: str, flags: int) -> None:
        if self._no_read.covers(real) or (flags & _WRITES and self._no_write.covers(real)):
            raise PermissionError(errno.EACCES, "denied by a path rule")
        if _is_own(real):
            raise PermissionError(errno.EACCES, "the warden's own")

    def _check_entry(self, real: str, *, is_moved: bool = False) -> None:
        if self._no_write.covers(real) or (is_moved and self._no_write.guards(real)):
            raise PermissionError(errno.EACCES, "denied by a path rule")
        if is_moved and (self._no_read.covers(real) or self._no_read.guards(real)):
            raise PermissionError(errno.EACCES, "denied by a path rule")

    def _rename(self, asked: notify.Asked) -> None:
        values, flags = asked.arguments, 0
        if asked.name == "rename":
            pairs = ((None, values[0]), (None, values[1]))
        else:
            pairs = ((values[0], values[1]), (values[2], values[3]))
            flags = values[4] & 0xFFFFFFFF if asked.name == "renameat2" else 0
        (old, old_name, source), (new, new_name, target) = (self._entry(asked, *pair) for pair in pairs)
        try:
            self._check_entry(source, is_moved=True)
            self._check_entry(target, is_moved=bool(flags & 2))  # 2: both are moved
            done = _libc.renameat2(old, os.fsencode(old_name), new, os.fsencode(new_name), ctypes.c_uint(flags))
            _raise_if(done)
        finally:
            os.close(old)
            os.close(new)
        notify.answer(self._listener, asked, 0)

    def _link(self, asked: notify.Asked) -> None:
        values = asked.arguments
        is_at = asked.name == "linkat"
        base, path = self._path(asked, *((values[0], values[1]) if is_at else (None, values[0])))
        parent, name, target = self._entry(asked, *((values[2], values[3]) if is_at else (None, values[1])))
        handle = None
        try:
            handle = _handle(path, base, is_followed=bool(is_at and values[4] & _FOLLOW))
            self._check_entry(_real(handle), is_moved=True)
            self._check_entry(target)
            os.link(f"/proc/self/fd/{handle}", name, dst_dir_fd=parent, follow_symlinks=True)
        finally:
            for fd in (base, parent, handle):
                _close(fd)
        notify.answer(self._listener, asked, 0)

    def _change(self, asked: notify.Asked) -> None:
        values = asked.arguments
        if asked.name == "truncate":
            self._truncate(asked)
            return
        at = 1 if asked.name.startswith("symlink") else 0
        is_at = asked.name.endswith("at")
        pair = (values[at], values[at + 1]) if is_at else (None, values[at])
        rest = values[at + 1 + is_at :]
        parent, name, real = self._entry(asked, *pair)
        try:
            self._check_entry(real)
            self._done(asked, parent, name, rest)
        finally:
            os.close(parent)
        notify.answer(self._listener, asked, 0)

    def _done(self, asked: notify.Asked, parent: int, name: str, rest: tuple[int, ...]) -> None:
        kind = asked.name[:-2] if asked.name.endswith("at") else asked.name
        if kind == "rmdir" or (kind == "unlink" and asked.name.endswith("at") and rest[0] & _REMOVEDIR):
            os.rmdir(name, dir_fd=parent)
        elif kind == "unlink":
            os.unlink(name, dir_fd=parent)
        elif kind == "mkdir":
            os.mkdir(name, _masked(asked.pid, rest[0] & 0o7777), dir_fd=parent)
        elif kind == "mknod":
            if not stat.S_ISFIFO(rest[0] & 0xFFFF):
                raise PermissionError(errno.EPERM, "no devices")
            os.mkfifo(name, _masked(asked.pid, rest[0] & 0o7777), dir_fd=parent)
        else:
            os.symlink(notify.text_at(asked.pid, asked.arguments[0]), name, dir_fd=parent)

    def _truncate(self, asked: notify.Asked) -> None:
        base, path = self._path(asked, None, asked.arguments[0])
        try:
            handle = _handle(path, base, is_followed=True)
        finally:
            _close(base)
        try:
            self._check_open(_real(handle), os.O_WRONLY)
            os.truncate(f"/proc/self/fd/{handle}", asked.arguments[1])
        finally:
            os.close(handle)
        notify.answer(self._listener, asked, 0)

    def _path(self, asked: notify.Asked, directory: int | None, address: int) -> tuple[int | None, str]:
        """The text of a path and a handle of the directory it starts in."""
        path = notify.text_at(asked.pid, address)
        if not path:
            raise FileNotFoundError(errno.ENOENT, "an empty path")
        where = _FDCWD if directory is None else ctypes.c_int(directory & 0xFFFFFFFF).value
        base = None
        if not path.startswith("/"):
            start = "cwd" if where == _FDCWD else f"fd/{where}"
            base = os.open(f"/proc/{asked.pid}/{start}", os.O_PATH | os.O_CLOEXEC)
        if not notify.is_waiting(self._listener, asked):
            _close(base)
            raise OSError(errno.EINTR, "gone")
        return base, _of_asker(path, asked.pid)

    def _entry(self, asked: notify.Asked, directory: int | None, address: int) -> tuple[int, str, str]:
        base, path = self._path(asked, directory, address)
        try:
            return _entry(base, path)
        finally:
            _close(base)


def _of_asker(path: str, pid: int) -> str:
    """`/proc/self` and what links to it mean whoever asks."""
    for name, place in (
        ("/proc/self", f"/proc/{pid}"),
        ("/proc/thread-self", f"/proc/{pid}/task/{pid}"),
        ("/dev/fd", f"/proc/{pid}/fd"),
        ("/dev/stdin", f"/proc/{pid}/fd/0"),
        ("/dev/stdout", f"/proc/{pid}/fd/1"),
        ("/dev/stderr", f"/proc/{pid}/fd/2"),
    ):
        if path == name or path.startswith(name + "/"):
            return place + path[len(name) :]
    return path


def _handle(path: str, base: int | None, *, is_followed: bool) -> int:
    flags = os.O_PATH | os.O_CLOEXEC | (0 if is_followed else os.O_NOFOLLOW)
    return os.open(path, flags, dir_fd=base)


def _entry(base: int | None, path: str) -> tuple[int, str, str]:
    """A handle of the directory, the last name, and the real path of both together."""
    folder, _, name = path.rstrip("/").rpartition("/")
    if name in ("", ".", ".."):
        raise OSError(errno.EBUSY, path)
    folder = folder or ("/" if path.startswith("/") else ".")
    parent = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=base)
    return parent, name, f"{_real(parent).rstrip('/')}/{name}"


def _real(handle: int) -> str:
    return os.readlink(f"/proc/self/fd/{handle}")


def _is_own(real: str) -> bool:
    parts = real.split("/")
    return len(parts) > 2 and parts[1] == "proc" and os.path.exists(f"/proc/self/task/{parts[2]}")


def _reopened(handle: int, flags: int, mode: int = 0) -> int:
    return os.open(f"/proc/self/fd/{handle}", flags | os.O_CLOEXEC, mode)


def _flags(asked: notify.Asked) -> tuple[int, int]:
    values = asked.arguments
    if asked.name == "creat":
        return os.O_CREAT | os.O_WRONLY | os.O_TRUNC, values[1] & 0o7777
    at = 2 if asked.name == "openat" else 1
    return values[at] & 0xFFFFFFFF, values[at + 1] & 0o7777


def _masked(pid: int, mode: int) -> int:
    """The mode without what the asker's umask takes; the usual one where it cannot be seen."""
    mask = 0o022
    try:
        with open(f"/proc/{pid}/status") as f:
            mask = next((int(line.split()[1], 8) for line in f if line.startswith("Umask:")), mask)
    except OSError:
        pass
    return mode & ~mask


def _raise_if(failed: int) -> None:
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _close(fd: int | None) -> None:
    if fd is not None:
        os.close(fd)


def _reap_orphans(code: int) -> None:
    while (dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None and dead.si_pid != code:
        os.waitpid(dead.si_pid, 0)


def _end_as(code: int) -> None:
    """End by the code's exit code or signal, so that whoever waits for us learns it."""
    _, status = os.waitpid(code, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.pause()
    os._exit(os.WEXITSTATUS(status))
