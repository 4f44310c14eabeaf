"""Memory cgroups, version 1 or 2, where this user may make them."""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

INTERPRETER_BYTES = 16 * 1024 * 1024
"""What the interpreter itself may take beside the code's memory."""

NEARLY_BYTES = 4 * 1024 * 1024
"""So near to its limit a group is over it: the kernel charges several pages at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupFiles:
    """What the files of one version are called."""

    limit: str
    peak: str
    kills: str
    is_resettable: bool
    """The peak can be set back between two children."""


V1 = CgroupFiles(
    limit="memory.limit_in_bytes", peak="memory.max_usage_in_bytes", kills="memory.oom_control", is_resettable=True
)
V2 = CgroupFiles(limit="memory.max", peak="memory.peak", kills="memory.events", is_resettable=False)


Planned = Sequence[tuple[str, CgroupFiles]]
"""Folders that a jail could have its groups in, the best first."""


class Cgroup:
    """One group; one child at a time."""

    def __init__(self, path: str, files: CgroupFiles) -> None:
        self.path = path
        self._files = files
        self._limit = 0
        self._kills_before = 0
        self._fds: dict[str, int] = {}
        os.mkdir(path)

    def prepare(self, memory_bytes: int) -> None:
        """Set the limit and forget what was before."""
        if memory_bytes != self._limit:
            self._write(self._files.limit, str(memory_bytes + INTERPRETER_BYTES))
            self._limit = memory_bytes
        if self._files.is_resettable:
            self._write(self._files.peak, "0")
        self._kills_before = self._count_kills()

    def entrance(self) -> io.FileIO:
        """A file through which a process puts itself in, whoever it is."""
        return open(os.path.join(self.path, "cgroup.procs"), "wb", buffering=0)

    def peak_bytes(self) -> int:
        """The most memory its processes had at a time."""
        with suppress(OSError, ValueError):
            return int(self._read(self._files.peak))
        return 0

    def was_over(self) -> bool:
        """Whether the kernel killed a process in it for going over its limit, and not because the machine was full."""
        if self._count_kills() <= self._kills_before:
            return False
        return self.peak_bytes() >= self._limit + INTERPRETER_BYTES - NEARLY_BYTES

    def remove(self) -> bool:
        """Take it away; whether it is gone: not while a process in it is still dying. Legal twice."""
        for fd in self._fds.values():
            os.close(fd)
        self._fds.clear()
        with suppress(OSError):
            os.rmdir(self.path)
        return not os.path.exists(self.path)

    def _count_kills(self) -> int:
        with suppress(OSError, ValueError, IndexError):
            rows = [line.split() for line in self._read(self._files.kills).splitlines()]
            return next(int(row[1]) for row in rows if row[0] == "oom_kill")
        return 0

    def _read(self, name: str) -> str:
        """A file of the group; kept open, for opening takes longer than reading."""
        if name not in self._fds:
            self._fds[name] = os.open(os.path.join(self.path, name), os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(self._fds[name], 1 << 12, 0).decode()

    def _write(self, name: str, text: str) -> None:
        fd = os.open(os.path.join(self.path, name), os.O_WRONLY)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)


class Cgroups:
    """The groups of one jail, in a folder of its own. The keeper removes them too, should the host be killed."""

    def __init__(self, folder: str, files: CgroupFiles) -> None:
        self.folder = folder
        self._files = files
        self._all: list[Cgroup] = []
        self._retired: list[Cgroup] = []
        self._made = 0

    @classmethod
    def create(cls, planned: Planned) -> Cgroups | None:
        """The first of these folders that the system lets us make groups in; None when it is none."""
        for folder, files in planned:
            try:
                os.mkdir(folder)
            except OSError:
                continue
            groups = cls(folder, files)
            if groups._works():
                return groups
            groups.close()
        return None

    def new(self) -> Cgroup:
        """A group with nobody in it."""
        self._made += 1
        group = Cgroup(os.path.join(self.folder, str(self._made)), self._files)
        self._all.append(group)
        return group

    def retire(self, group: Cgroup) -> None:
        """Have a group removed by the next `sweep` that finds it empty."""
        self._all.remove(group)
        self._retired.append(group)

    def sweep(self) -> None:
        """Remove what was retired and is empty."""
        self._retired = [group for group in self._retired if not group.remove()]

    def close(self) -> bool:
        """Remove them all; whether they are gone: not while the kernel still counts a process that is dead."""
        for group in (*self._all, *self._retired):
            group.remove()
        with suppress(OSError):
            os.rmdir(self.folder)
        return not os.path.exists(self.folder)

    def _works(self) -> bool:
        try:
            if self._files is V2:
                with open(os.path.join(self.folder, "cgroup.subtree_control"), "w") as f:
                    f.write("+memory")
            group = self.new()
            group.prepare(1 << 30)
            group.entrance().close()
        except OSError:
            return False
        return True


def planned_folders() -> Planned:
    """Folders below our own group. The keeper is told their names before one is made: it removes them, whoever dies."""
    name = f"hatchway-{os.getpid()}-{secrets.token_hex(4)}"
    return [(os.path.join(parent, name), files) for parent, files in _places()]


def _places() -> list[tuple[str, CgroupFiles]]:
    """Folders a group of ours could be made in, by version."""
    places: list[tuple[str, CgroupFiles]] = []
    own = _own_paths()
    for root, mount_point, kind, controllers in _mounts():
        if kind == "cgroup" and "memory" in controllers and "memory" in own:
            places.append((_joined(mount_point, root, own["memory"]), V1))
        elif kind == "cgroup2" and "" in own:
            here = _joined(mount_point, root, own[""])
            places += [(here, V2), (os.path.dirname(here), V2)]  # a group that holds processes cannot be divided
    return places


def _own_paths() -> dict[str, str]:
    """Our path in the hierarchy of each controller; version 2 is the one without a name."""
    try:
        with open("/proc/self/cgroup") as f:
            rows = [line.rstrip("\n").split(":", 2) for line in f]
    except OSError:
        return {}
    return {name: path for _, names, path in rows for name in names.split(",")}


def _mounts() -> list[tuple[str, str, str, list[str]]]:
    try:
        with open("/proc/self/mountinfo") as f:
            rows = [line.split(" - ") for line in f]
    except OSError:
        return []
    halves = [(left.split(), right.split()) for left, right in rows]
    return [
        (left[3], left[4], right[0], right[2].split(",")) for left, right in halves if right[0].startswith("cgroup")
    ]


def _joined(mount_point: str, root: str, own: str) -> str:
    inside = os.path.relpath(own, root) if own.startswith(root) else "."
    return os.path.normpath(os.path.join(mount_point, inside))
