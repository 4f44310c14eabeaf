"""How much code has written where no quota holds it: looked at from time to time. The code may be hostile."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Iterable

from hatchway.sandboxes.guest_process import Death
from hatchway.sandboxes.jail.launch import Quota
from hatchway.sandboxes.process.inside import tree

LOOK_SECONDS = 0.2
"""Between two looks."""
MAX_HELD = 100
"""Folders held open in a walk: those that have others beside the one that is looked at."""
_DELETED = b" (deleted)"
_BLOCK = 512
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class DiskWatch:
    """Looks at how much a process has written to its folder, and kills it past its quota.

    Args:
        folder: The folder.
        quota: Bytes and files it may take.
        file_bytes: How large one file can be.
        processes: Gives the pids of the code: a file that has no name any more is found by who holds it.
        kill: Ends them.
    """

    def __init__(
        self,
        folder: str,
        quota: Quota,
        *,
        file_bytes: int,
        processes: Callable[[], Iterable[int]],
        kill: Callable[[], None],
    ) -> None:
        self._folder, self._quota = folder, quota
        self._file_bytes = file_bytes
        self._processes, self._kill = processes, kill
        self._over = ""
        self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def until(self, on_death: Callable[[Death], None]) -> Callable[[Death], None]:
        """`on_death`, told of the quota that was the reason."""

        def on_end(death: Death) -> None:
            self._timer.cancel()
            on_death(Death(limit=self._over) if self._over and not death.is_crash else death)

        return on_end

    def _look(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)
        seen = _Folder(self._quota.disk_files)
        seen.measure(self._folder)
        if seen.files > self._quota.disk_files:
            self._over = "disk_files"
        elif seen.size + unnamed_bytes(self._folder, self._processes(), self._file_bytes) > self._quota.disk_bytes:
            self._over = "disk_bytes"
        if self._over:
            self._kill()


class _Folder:
    """Bytes and files below a folder; stops counting past `most` files, or when it is more tangled than honest code's.

    Walks by handles: no path is too long for it, and no link that takes a folder's place leads it elsewhere.
    """

    def __init__(self, most: int) -> None:
        self.size = self.files = 0
        self._most = most
        self._open: list[tuple[int, list[str]]] = []

    def measure(self, folder: str) -> None:
        try:
            self._enter(folder, None)
            while self._open and self.files <= self._most:
                self._step()
        finally:
            for fd, _ in self._open:
                os.close(fd)

    def _step(self) -> None:
        """Go on to the next folder; the one that it was the last of is not needed any more."""
        fd, names = self._open.pop()
        if not names:
            os.close(fd)
            return
        name = names.pop()
        if names:
            self._open.append((fd, names))
        self._enter(name, fd)
        if not names:
            os.close(fd)
        if len(self._open) > MAX_HELD:
            self.files = self._most + 1

    def _enter(self, name: str, parent: int | None) -> None:
        try:
            fd = _opened(name, parent)
        except OSError:
            return  # it has just been removed
        self._open.append((fd, self._folders_in(fd)))

    def _folders_in(self, fd: int) -> list[str]:
        """Count what lies in a folder; the names of the folders there."""
        folders: list[str] = []
        with os.scandir(fd) as entries:
            for entry in entries:
                try:
                    found = entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # it has just been removed
                self.files += 1
                self.size += _bytes_of(found)
                if stat.S_ISDIR(found.st_mode):
                    folders.append(entry.name)
                if self.files > self._most:
                    break
        return folders


def _opened(name: str, parent: int | None) -> int:
    """A folder, also one whose modes keep its owner out: what lies there takes room all the same."""
    handle = os.open(name, _FOLDER | os.O_PATH, dir_fd=parent)
    try:
        if os.geteuid() != 0 and os.fstat(handle).st_mode & 0o500 != 0o500:
            os.chmod(f"/proc/self/fd/{handle}", 0o700)
        return os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(handle)


def _bytes_of(found: os.stat_result) -> int:
    """A hole counts as if it were filled, and so does room that was reserved behind the end."""
    return max(found.st_size, found.st_blocks * _BLOCK)


def unnamed_bytes(folder: str, processes: Iterable[int], file_bytes: int) -> int:
    """Bytes of files that were removed from a folder while somebody held them.

    Args:
        folder: The folder.
        processes: Who may hold them.
        file_bytes: How large one is that is mapped and no longer open: its size cannot be asked for.
    """
    prefix = os.fsencode(folder) + b"/"
    sizes: dict[int, int] = {}
    mapped: set[int] = set()
    for pid in processes:
        removed = [path for path, name in tree.descriptors(pid).items() if _is_removed(name, prefix)]
        with tree.seen_as_its_user(pid):
            sizes.update(_sizes(removed))
            mapped.update(_mapped(pid, prefix))
    return sum(sizes.values()) + file_bytes * len(mapped - sizes.keys())


def _sizes(paths: list[str]) -> dict[int, int]:
    """How large open files are, by inode."""
    found: dict[int, int] = {}
    for path in paths:
        try:
            seen = os.stat(path)
        except OSError:
            continue  # closed just now
        found[seen.st_ino] = _bytes_of(seen)
    return found


def _mapped(pid: int, prefix: bytes) -> set[int]:
    """The inodes of files without a name in its memory."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as f:
            rows = [line.rstrip(b"\n").split(None, 5) for line in f if _DELETED in line]
    except OSError:
        return set()
    return {int(row[4]) for row in rows if len(row) == 6 and _is_removed(row[5], prefix)}


def _is_removed(path: bytes, prefix: bytes) -> bool:
    return path.startswith(prefix) and path.endswith(_DELETED)
