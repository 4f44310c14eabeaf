"""Folders of the host's own, each held by a lock for as long as its process lives.

They lie in one place per user. A killed process cannot remove its folders, but the kernel takes its locks back: the
next process sees by them which are nobody's any more, whatever checkout, container or machine they are of. The
system's own clean-up of temporary files leaves a locked folder alone too, however old it is.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import tempfile
import threading
from pathlib import Path

from hatchway.sandboxes.process.inside.scratch import remove_tree

if sys.platform != "win32":
    import fcntl

_TRIES = 8
_swept: set[Path] = set()


class HeldFolder:
    """A new, empty folder only this user can enter. It is owned: `remove` it.

    Args:
        kind: How its name begins, for people who look there.
        root: Where the place of this user is; None: the system's temporary folder.

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, kind: str, root: Path | None = None) -> None:
        root = root or Path(tempfile.gettempdir())
        self._fd = -1  # holds the lock
        for _ in range(_TRIES):
            try:
                self._place = _place(root)
                self.path = tempfile.mkdtemp(prefix=f"{kind}-", dir=self._place)
                self._fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
                if _lock(self._fd) is not False and os.path.samestat(os.fstat(self._fd), os.stat(self.path)):
                    break
            except FileNotFoundError:
                pass  # whoever leaves last removes the place, and a sweep what is not locked yet: once more
            self._close()
        else:
            raise OSError(errno.EBUSY, f"what is made in {root} is removed at once")
        if self._place != root:
            _sweep_once(self._place)

    def opened(self) -> int:
        """Another handle on it, which is the caller's.

        Raises:
            OSError: There are no descriptors left; the folder is removed.
        """
        try:
            return os.dup(self._fd)
        except OSError:
            self.remove()
            raise

    def remove(self) -> None:
        """Remove it with all that is in it. Legal twice."""
        if self._fd < 0:
            return
        remove_tree(self.path)
        self._close()
        _leave(self._place)

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _place(root: Path) -> Path:
    """The folder of this user's; `root` itself where somebody else has taken its name."""
    place = root / f"hatchway-{os.geteuid()}"
    try:
        os.mkdir(place, 0o700)
    except FileExistsError:
        found = os.lstat(place)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            return root
    return place


def _lock(fd: int) -> bool | None:
    """Whether the lock is ours now; None on a file system without locks, where nobody can tell who is dead."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _sweep_once(place: Path) -> None:
    """Remove what killed processes left, beside whatever this one does."""
    if place not in _swept:
        _swept.add(place)
        if len(os.listdir(place)) > 1:
            threading.Thread(target=_sweep, args=(place,), name="hatchway-sweep", daemon=True).start()


def _sweep(place: Path) -> None:
    for name in os.listdir(place):
        try:
            fd = os.open(place / name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue  # gone, or nothing of ours
        if _lock(fd):
            remove_tree(str(place / name))
        os.close(fd)
    _leave(place)


def _leave(place: Path) -> None:
    try:
        os.rmdir(place)
    except OSError:
        pass  # others have folders there
