"""Files the code may read: directories through Monty's mounts, single files through a read-only tree of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pydantic_monty as pm

from hatchway.core.grants import INPUT_ROOT, FileMount


class Files:
    """The mounts of one sandbox, opened when first used and shared by its executions. Nothing can be written.

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

    def feed_options(self) -> dict[str, Any]:
        """The arguments that show the files to an action."""
        if self._mounts and self._opened is None:
            self._opened = self._open()
        return dict(self._opened or {})

    def load_options(self) -> dict[str, Any]:
        """The arguments that show the files to a restored action, whose working directory is in the dump."""
        return {name: value for name, value in self.feed_options().items() if name != "cwd"}

    def close(self) -> None:
        """Give the directories back."""
        for mount in (self._opened or {}).get("mount", ()):
            mount.close()
        self._opened = None

    def _open(self) -> dict[str, Any]:
        directories = [m for m in self._mounts if Path(m.host_path).is_dir()]
        files = [m for m in self._mounts if not Path(m.host_path).is_dir()]
        mounts = [pm.MountDir(host_path=m.host_path, virtual_path=m.mount_path, mode="read-only") for m in directories]
        return {"mount": mounts, "os": _ReadOnly(files), "cwd": str(INPUT_ROOT)}


class _ReadOnly(pm.OSAccess):
    """The granted files as a tree; each is read from the host when the code reads it."""

    def __init__(self, mounts: Sequence[FileMount]) -> None:
        super().__init__([pm.CallbackFile(m.mount_path, read=_reader(m), write=_refuse) for m in mounts])

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
