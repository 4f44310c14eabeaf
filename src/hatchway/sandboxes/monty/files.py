"""Files of the code: directories through Monty's mounts, single files through a read-only tree of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

import pydantic_monty as pm

from hatchway.core.grants import FileMount
from hatchway.core.limits import Limits
from hatchway.sandboxes.monty.output import MontyOutput
from hatchway.sandboxes.shown_files import check_there


class Files:
    """The mounts of one sandbox, opened when first used and shared by its executions.

    Args:
        mounts: Absolute host paths and where they appear.
    """

    def __init__(self, mounts: Sequence[FileMount]) -> None:
        self._mounts = tuple(mounts)
        self._opened: dict[str, Any] | None = None

    @property
    def is_any(self) -> bool:
        """Whether there is anything to read."""
        return bool(self._mounts)

    def check(self) -> None:
        """Open what is granted, if it is not yet.

        Raises:
            InvalidSetting: It is gone, or cannot be read.
        """
        if self._mounts and self._opened is None:
            self._opened = self._open()

    def feed_options(self, output: MontyOutput | None, limits: Limits) -> dict[str, Any]:
        """The arguments that show the files, and the action's own `/output`, to an action."""
        if output is None:
            return {}
        self.check()
        opened = dict(self._opened or {})
        return {**opened, "mount": [*opened["mount"], output.mount(limits)]}

    def load_options(self, output: MontyOutput | None, limits: Limits) -> dict[str, Any]:
        """The arguments that show the files to a restored action, whose working directory is in the dump."""
        return {name: value for name, value in self.feed_options(output, limits).items() if name != "cwd"}

    def close(self) -> None:
        """Give the directories back."""
        for mount in (self._opened or {}).get("mount", ()):
            mount.close()
        self._opened = None

    def _open(self) -> dict[str, Any]:
        for m in self._mounts:
            check_there(Path(m.host_path))
        directories = [m for m in self._mounts if Path(m.host_path).is_dir()]
        files = [m for m in self._mounts if not Path(m.host_path).is_dir()]
        mounts = [pm.MountDir(host_path=m.host_path, virtual_path=m.mount_path, mode="read-only") for m in directories]
        return {"mount": mounts, "os": _ReadOnly(files, directories), "cwd": "/"}


class _ReadOnly(pm.OSAccess):
    """The granted files as a tree; each is read from the host when the code reads it.

    The directories stand in it too: Monty's mounts show what is in them, and not that they lie in `/input`. What is in
    them is asked here only by a walk that begins above them.
    """

    def __init__(self, files: Sequence[FileMount], directories: Sequence[FileMount]) -> None:
        super().__init__([pm.CallbackFile(m.mount_path, read=_reader(m), write=_refuse) for m in files])
        self._directories = tuple(directories)
        for m in directories:
            super().path_mkdir(PurePosixPath(m.mount_path), parents=True, exist_ok=True)

    def path_iterdir(self, path: Any) -> list[PurePosixPath]:
        host = self._on_host(path)
        if host is None:
            return super().path_iterdir(path)
        return [path / each.name for each in os.scandir(host) if not each.is_symlink()]  # as the mount shows it

    def path_is_dir(self, path: Any) -> bool:
        host = self._on_host(path)
        return super().path_is_dir(path) if host is None else host.is_dir() and not host.is_symlink()

    def path_is_file(self, path: Any) -> bool:
        host = self._on_host(path)
        return super().path_is_file(path) if host is None else host.is_file() and not host.is_symlink()

    def path_exists(self, path: Any) -> bool:
        return self.path_is_dir(path) or self.path_is_file(path)

    def _on_host(self, path: PurePosixPath) -> Path | None:
        """Where something in a granted directory lies; None for all else, and for what only a link leads to."""
        for m in self._directories:
            if path.is_relative_to(m.mount_path) and ".." not in path.parts:
                host = Path(m.host_path, path.relative_to(m.mount_path))
                return host if host.parent.resolve() / host.name == host else None
        return None

    def path_open(self, path: Any, mode: str) -> Any:
        if set(mode) & set("wax+"):
            _refuse(path)
        return super().path_open(path, mode)

    def path_mkdir(self, path: Any, parents: bool, exist_ok: bool) -> None:
        _refuse(path)

    def path_unlink(self, path: Any) -> None:
        _refuse(path)

    def path_rmdir(self, path: Any) -> None:
        _refuse(path)

    def path_rename(self, path: Any, target: Any) -> None:
        _refuse(path)

    def path_write_text(self, path: Any, data: str) -> int:
        _refuse(path)

    def path_write_bytes(self, path: Any, data: bytes) -> int:
        _refuse(path)

    def path_append_text(self, path: Any, data: str) -> int:
        _refuse(path)

    def path_append_bytes(self, path: Any, data: bytes) -> int:
        _refuse(path)


def _reader(mount: FileMount) -> Callable[[Any], bytes]:
    def read(_path: Any) -> bytes:
        try:
            return Path(mount.host_path).read_bytes()
        except OSError as e:  # its text would tell the code where the file lies on the host
            raise OSError(f"[Errno {e.errno}] cannot be read: {mount.mount_path!r}") from None

    return read


def _refuse(path: Any, _content: Any = None) -> NoReturn:
    raise PermissionError(f"Permission denied: {str(getattr(path, 'path', path))!r} (files are granted for reading)")
