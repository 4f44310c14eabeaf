"""What the supervisor and the spawner ask of the kernel: signals, and the two prctl options they live by."""

from __future__ import annotations

import os
import signal

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def prctl(option: int, value: int) -> bool:
    """Whether the kernel took the option; False where there is none."""
    try:
        import ctypes

        return ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0
    except (ImportError, AttributeError, OSError):
        return False


def kill(pid: int) -> None:
    """SIGKILL, if the process is still there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def kill_group(pid: int) -> None:
    """SIGKILL to a process group: where /proc tells nothing (not Linux) it is all that can be killed."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def wake_on_child() -> int:
    """A descriptor that is readable when a child has died."""
    read_fd, write_fd = os.pipe()
    for fd in (read_fd, write_fd):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return read_fd


def drain(fd: int) -> None:
    """Empty a wake-up descriptor."""
    try:
        os.read(fd, 4096)
    except BlockingIOError:
        pass


def tell(control: int, line: str) -> None:
    """Say something to the host, if it is still there."""
    try:
        os.write(control, line.encode("ascii") + b"\n")
    except OSError:
        pass


def close_all_but(*kept: int) -> None:
    """Give up every other descriptor."""
    for name in os.listdir("/dev/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                pass  # the one the listing itself had
