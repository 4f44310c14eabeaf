"""Files shown where the sandbox has no file system of its own: `input/` and `output/` in the working directory."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from hatchway.core.errors import InvalidSetting
from hatchway.core.grants import INPUT_ROOT, FileMount

PLACES = "Given files are in `input/`, read-only. Leave files for the user in `output/`."
"""For the model; true in every sandbox that is given files."""
HINT = "give a workspace_root and file_mounts that can be read"


def check_below_input(mounts: Sequence[FileMount], who: str) -> None:
    """Nothing can be put at other absolute paths.

    Raises:
        InvalidSetting: A mount path is not below `/input`.
    """
    for mount in mounts:
        if not PurePosixPath(mount.mount_path).is_relative_to(INPUT_ROOT):
            raise InvalidSetting(
                f"{who} cannot show {mount.host_path} at {mount.mount_path}: it has no file system of its own",
                hint="use a relative path; it appears below input/ in the working directory of the code",
            )


def show_input(
    folder: Path, workspace: Path | None, mounts: Sequence[FileMount], place: Callable[[Path, Path], None], who: str
) -> None:
    """Make `input/`: the workspace linked to, never walked, and each mount put there by `place(source, target)`.

    Raises:
        InvalidSetting: Something is gone, cannot be read, or lies where it cannot be put.
    """
    check_below_input(mounts, who)
    whole = [mount for mount in mounts if PurePosixPath(mount.mount_path) == PurePosixPath(INPUT_ROOT)]
    if whole and workspace is None:  # a mount of all of `input/` is a workspace by another name
        workspace, mounts = Path(whole[0].host_path), [mount for mount in mounts if mount not in whole]
    shown = folder / "input"
    if workspace is not None:
        check_there(workspace)
    if workspace is not None and not mounts:
        shown.symlink_to(workspace)
        return
    shown.mkdir()
    for entry in workspace.iterdir() if workspace is not None else ():
        (shown / entry.name).symlink_to(entry)
    for mount in mounts:
        name = PurePosixPath(mount.mount_path).relative_to(INPUT_ROOT)
        if any((shown / parent).is_symlink() for parent in name.parents):
            raise InvalidSetting(f"{who} cannot mount {name} into a directory of the workspace")
        _put(Path(mount.host_path), shown / name, place)


def check_there(path: Path) -> None:
    """Look at what is granted just before it is shown.

    Raises:
        InvalidSetting: It is gone, or cannot be read.
    """
    try:
        is_folder = stat.S_ISDIR(os.stat(path).st_mode)
    except OSError as e:
        raise InvalidSetting(f"cannot show {path}: {os.strerror(e.errno or 0)}", hint=HINT) from None
    if not os.access(path, os.R_OK | (os.X_OK if is_folder else 0)):
        raise InvalidSetting(f"cannot show {path}: Permission denied", hint=HINT)


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder, without permission to write."""
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target)
    for file in (target, *target.rglob("*")):
        if file.is_file():
            file.chmod(stat.S_IMODE(file.stat().st_mode) & ~0o222)


def link(source: Path, target: Path) -> None:
    """Link to a file or a folder."""
    target.symlink_to(source)


def _put(source: Path, target: Path, place: Callable[[Path, Path], None]) -> None:
    check_there(source)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink():
            target.unlink()
        place(source, target)
    except (OSError, shutil.Error) as e:
        reason = e.strerror if isinstance(e, OSError) and e.strerror else "a part of it cannot be read"
        raise InvalidSetting(f"cannot show {source}: {reason}", hint=HINT) from e
