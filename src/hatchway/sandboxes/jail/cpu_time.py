"""The CPU time of a sealed process and everything below it, as an action's end asks for it."""

from __future__ import annotations

import os

from hatchway.sandboxes.process.inside import tree

MOST_FD = 256
"""Files are kept open only below this descriptor: a host with many actions at a time needs the others."""


class CpuTime:
    """What the kernel has counted for one child.

    Args:
        pid: The child.
        init_pid: The init of its pid namespace, to which its orphans go.
    """

    def __init__(self, pid: int, init_pid: int) -> None:
        self._pid, self._init_pid = pid, init_pid
        self._paths = f"/proc/{pid}/stat", tree.children_path(pid), tree.children_path(init_pid)
        self._fds: list[int] = []

    def open(self) -> None:
        """An action has begun: open what its end would wait for. Legal twice."""
        if self._fds:
            return
        try:
            for path in self._paths:
                self._fds.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            self.close()  # it is gone, or this kernel has no such file; `seconds` looks for itself
        if self._fds and self._fds[-1] >= MOST_FD:
            self.close()

    def close(self) -> None:
        """Give the files back. Legal twice."""
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()

    def seconds(self) -> float | None:
        """Of all its processes, ever; None when it is gone."""
        own, is_alone = self._seen()
        if own is None:
            return None
        ticks = own.own_ticks + own.reaped_ticks
        if own.threads > 1 or not is_alone:
            below = [*tree.descendants(self._pid).values(), *tree.descendants(self._init_pid).values()]
            ticks += sum(s.own_ticks + s.reaped_ticks for s in below)
        return ticks / tree.TICKS

    def _seen(self) -> tuple[tree.Stat | None, bool]:
        """What the kernel knows of it, and whether its first thread and its init have no child."""
        if not self._fds:
            own = tree.stat(self._pid)
            return own, own is not None and not (tree.is_parent(self._pid) or tree.is_parent(self._init_pid))
        try:
            text, *children = [os.pread(fd, 1 << 12, 0) for fd in self._fds]
        except OSError:
            return None, True
        return tree.parsed(text), not any(children)
