"""The private folder of one guest process, with `input/` and `output/` where files are granted."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hatchway.core.errors import SandboxUnavailable
from hatchway.core.grants import FileMount
from hatchway.sandboxes.shown_files import check_below_input, copy, show_input

WHO = "the process sandbox"


class Files:
    """What the processes of one sandbox are given.

    Args:
        workspace: Linked to as `input/`.
        mounts: Copied below `input/`.
        scratch_root: Where private folders are made; None: the system's temporary folder.

    Raises:
        InvalidSetting: A mount is not below `/input`: unsealed code sees the host's own file system.
    """

    def __init__(self, workspace: Path | None, mounts: Sequence[FileMount], scratch_root: str | Path | None) -> None:
        check_below_input(mounts, WHO)
        self._workspace, self._mounts, self._scratch_root = workspace, mounts, scratch_root

    @property
    def is_any(self) -> bool:
        """Whether there is a file surface: `input/` and `output/`."""
        return self._workspace is not None or bool(self._mounts)

    def make_folder(self) -> str:
        """A new folder only this user can enter, empty but for `output/`.

        Raises:
            SandboxUnavailable: It cannot be made.
        """
        folder = make_folder(self._scratch_root, "scratch_root")
        if self.is_any:
            os.mkdir(f"{folder}/output")
        return folder

    def show(self, folder: str) -> None:
        """Fill `input/`. Blocks: call it in a thread.

        Raises:
            InvalidSetting: Something is gone, or cannot be read.
        """
        show_input(Path(folder), self._workspace, self._mounts, copy, WHO)


def make_folder(root: str | Path | None, setting: str) -> str:
    """A new, empty folder only this user can enter.

    Args:
        root: Where; None: the system's temporary folder.
        setting: What the caller calls that.

    Raises:
        SandboxUnavailable: It cannot be made.
    """
    try:
        return tempfile.mkdtemp(prefix="hatchway-", dir=root)
    except OSError as e:
        raise SandboxUnavailable(f"no folder for the code can be made: {e}", hint=f"set {setting}=") from None
