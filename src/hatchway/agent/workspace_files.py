"""Files of the workspace, opened so that no link leads out of it, whoever changes the folders meanwhile."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from hatchway.core.errors import ToolError

MOST_BYTES = 10_000_000
"""Of a file that is read or written as text."""
_SECRET = (".env", ".env.*")


class WorkspaceFiles:
    """The files below one directory.

    Args:
        root: The directory.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def name(self, path: str) -> str:
        """The path as it is below the workspace.

        Raises:
            ToolError: It lies outside, or names nothing.
        """
        given = PurePosixPath(path)
        if given.is_absolute():
            if not given.is_relative_to(PurePosixPath(self.root)):
                raise ToolError(f"{path} lies outside the workspace {self.root}")
            given = given.relative_to(PurePosixPath(self.root))
        if not given.parts or ".." in given.parts or not _is_text(path):
            raise ToolError(f"{path!r} names no file of the workspace; write it relative to {self.root}, without '..'")
        return str(given)

    def read(self, path: str) -> bytes:
        """A file's content.

        Raises:
            ToolError: There is no such file, it is none, or it is too large.
        """
        with self._folder_of(path, make=False) as (folder, name):
            handle = _opened(path, name, os.O_RDONLY | os.O_NONBLOCK, folder)
            told = os.fstat(handle)
            if not stat.S_ISREG(told.st_mode):
                os.close(handle)
                raise ToolError(f"{path} is no regular file")
            with open(handle, "rb") as file:
                if told.st_size > MOST_BYTES:
                    raise ToolError(
                        f"{path} has {told.st_size} bytes, more than can be read at once",
                        hint="read parts of it in a code action",
                    )
                return file.read(MOST_BYTES + 1)

    def write(self, path: str, content: bytes) -> None:
        """Put content in the file's place; whoever reads it sees the old or the new one, never a part.

        Raises:
            ToolError: It cannot be written.
        """
        if len(content) > MOST_BYTES:
            raise ToolError(f"{len(content)} bytes are more than can be written at once")
        with self._folder_of(path, make=True) as (folder, name):
            mode = _mode(path, name, folder)
            beside = f".{secrets.token_hex(8)}.new"  # nobody can have put a link or a pipe there
            handle = _opened(path, beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder)
            try:
                with open(handle, "wb") as file:
                    if mode is not None:
                        os.fchmod(handle, mode)
                    file.write(content)
                os.replace(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError as e:
                os.unlink(beside, dir_fd=folder)
                raise ToolError(f"{path} cannot be written: {e.strerror}") from None

    @contextmanager
    def _folder_of(self, path: str, *, make: bool) -> Generator[tuple[int, str]]:
        """The open folder of a file, walked to step by step, and the file's name in it."""
        *folders, name = PurePosixPath(self.name(path)).parts
        handle = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for folder in folders:
                if make:
                    _made(path, folder, handle)
                inner = _opened(path, folder, os.O_RDONLY | os.O_DIRECTORY, handle)
                os.close(handle)
                handle = inner
            yield handle, name
        finally:
            os.close(handle)


def read_start(path: Path, most: int) -> bytes:
    """The first bytes of a file; of a pipe that somebody put in its place none would ever come.

    Raises:
        OSError: It cannot be read, or is no regular file.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        return file.read(most)


def is_secret(name: str) -> bool:
    """Whether a file of this name is not shown to a model."""
    return any(fnmatchcase(name, pattern) for pattern in _SECRET)


def _is_text(path: str) -> bool:
    """Whether it can be a file's name: a model may write half a character."""
    try:
        return b"\0" not in path.encode()
    except UnicodeEncodeError:
        return False


def _mode(path: str, name: str, folder: int) -> int | None:
    """What the file may be used for; None where there is none yet."""
    try:
        told = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise ToolError(f"{path}: {e.strerror}") from None
    if not stat.S_ISREG(told.st_mode):
        raise ToolError(f"{path} is no regular file")
    return stat.S_IMODE(told.st_mode) & 0o777


def _made(path: str, name: str, folder: int) -> None:
    try:
        os.mkdir(name, dir_fd=folder)
    except FileExistsError:
        pass
    except OSError as e:
        raise ToolError(f"{path} cannot be written: {e.strerror}") from None


def _opened(path: str, name: str, flags: int, folder: int, mode: int = 0o644) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=folder)
    except FileNotFoundError:
        raise ToolError(f"there is no file {path}") from None
    except OSError as e:
        why = "a link, which is not followed" if e.errno == 40 else e.strerror
        raise ToolError(f"{path} cannot be opened: {name} is {why}" if e.errno == 40 else f"{path}: {why}") from None
