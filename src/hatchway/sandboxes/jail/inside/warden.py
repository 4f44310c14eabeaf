"""The warden: opens files in the place of sealed code, so that what is denied by name stays closed.

It stands between the code and whoever started it, behind the same walls (mounts, uid, Landlock), and has no power the
code lacks. A path is looked at once, turned into a handle, and the handle's real name decides: no link, rename or
change of the text meanwhile can change what is opened. Should the code kill it, nothing can be opened any more.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
from collections.abc import Callable
from typing import Any

from . import attributes, kernel, notify
from .attributes import Attributes
from .changing import Changing
from .denied import Denied
from .guarded import Guarded
from .opening import Opening

OPENS = "open openat openat2 creat"
MOVES = "rename renameat renameat2 link linkat"
CHANGES = "truncate unlink unlinkat rmdir symlink symlinkat mkdir mkdirat mknod mknodat"
REAP_SECONDS = 0.2
PASSED_ON = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH,
)  # fmt: skip
"""Signals that whoever started the code sends to what it takes for the code."""


def enter(rules: dict[str, Any], roots: list[str], writable: list[str]) -> None:
    """Go on as the code, below a warden that holds it to the rules. Needs Landlock and no_new_privs set before.

    Args:
        rules: The patterns.
        roots: Places in which bare names count.
        writable: Places in which the code may change what a file is like.
    """
    ours, theirs = socket.socketpair()
    pid = kernel.fork()
    if pid:
        try:
            theirs.close()
            _be_warden(pid, ours, rules, roots, writable)
        finally:
            os._exit(1)
    ours.close()
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    names = f"{OPENS} {MOVES} {attributes.NAMES} {CHANGES if rules['deny_write'] else ''}"
    notify.hand_over(os.dup(theirs.fileno()), notify.ask_for(names))
    theirs.recv(1)
    theirs.close()


def _be_warden(code: int, channel: socket.socket, rules: dict[str, Any], roots: list[str], writable: list[str]) -> None:
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # its memory is nobody's business
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)  # Yama lets it look at descendants only: let none leave
    for number in PASSED_ON:
        signal.signal(number, lambda given, _frame: os.kill(code, given))
    for number in (signal.SIGTSTP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    listener = notify.taken(channel)
    if listener is None:
        return  # dead already
    os.umask(0)
    kernel.close_all_but({0, 1, 2, listener, channel.fileno()})
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)  # else it would keep the code's pipes open
    channel.send(b"x")
    channel.close()
    no_read, no_write = (Denied(rules[name], roots) for name in ("deny_read", "deny_write"))
    guarded = Guarded(listener, no_read, no_write, roots)
    places = [(path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in writable if os.path.exists(path)]
    about = Attributes(listener, places, lambda real: no_read.covers(real) or no_write.covers(real))
    Warden(guarded, about).serve(code)


class Warden:
    """Answers until the code is dead, and then ends as the code did."""

    def __init__(self, guarded: Guarded, about: Attributes) -> None:
        self._listener = guarded.listener
        opening, changing = Opening(guarded), Changing(guarded)
        self._acts: dict[str, Callable[[notify.Asked], None]] = {
            **dict.fromkeys(("open", "openat", "creat"), opening.open),
            **dict.fromkeys(CHANGES.split(), changing.change),
            **dict.fromkeys(("rename", "renameat", "renameat2"), changing.rename),
            **dict.fromkeys(("link", "linkat"), changing.link),
            **dict.fromkeys(attributes.NAMES.split(), about.change),
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
                raise OSError(errno.ENOSYS, asked.name)  # callers fall back to openat, and to fchmodat
            act(asked)
        except OSError as e:
            notify.answer(self._listener, asked, e.errno or errno.EACCES)
        except (ValueError, UnicodeError, RuntimeError):
            notify.answer(self._listener, asked, errno.EACCES)


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
