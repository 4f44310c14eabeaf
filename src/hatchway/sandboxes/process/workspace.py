"""The private folder of one guest process: its working directory, with copies of what is mounted."""

from __future__ import annotations

import shutil
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from hatchway.core.errors import InvalidSetting, SandboxUnavailable
from hatchway.core.grants import INPUT_ROOT, FileMount


def make_workspace(root: str | Path | None) -> str:
    """A new, empty folder only this user can enter.

    Raises:
        SandboxUnavailable: It cannot be made.
    """
    try:
        return tempfile.mkdtemp(prefix="hatchway-", dir=root)
    except OSError as e:
        raise SandboxUnavailable(f"no folder for the code can be made: {e}", hint="set workspace_root=") from None


def check_mounts(mounts: Sequence[FileMount]) -> None:
    """An unsealed process sees the real file system: nothing can be put at other absolute paths.

    Raises:
        InvalidSetting: A mount path is not below `input/`.
    """
    for mount in mounts:
        if not PurePosixPath(mount.mount_path).is_relative_to(INPUT_ROOT):
            raise InvalidSetting(
                f"the process sandbox cannot mount at {mount.mount_path}: it has no file system of its own",
                hint="use a relative path; it appears below input/ in the working directory of the code",
            )


def stage(mounts: Sequence[FileMount], workspace: str) -> None:
    """Copy what is mounted to `input/` in the workspace, without write permission."""
    for mount in mounts:
        target = Path(workspace) / PurePosixPath(mount.mount_path).relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if Path(mount.host_path).is_dir():
            shutil.copytree(mount.host_path, target, dirs_exist_ok=True)
        else:
            shutil.copy2(mount.host_path, target)
        for file in (target, *target.rglob("*")):
            if file.is_file():
                file.chmod(stat.S_IMODE(file.stat().st_mode) & ~0o222)
