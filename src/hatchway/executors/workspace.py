"""The working directory of one program: input files staged, new files collected, all of it removed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from hatchway.core.errors import CodeLimitError, InvalidSetting
from hatchway.core.limits import Limits
from hatchway.core.results import ExecFile
from hatchway.sandboxes.output_folder import OutputFolder
from hatchway.sandboxes.process.files import make_folder
from hatchway.sandboxes.process.inside.scratch import remove_tree


class Workspace:
    """A new folder only this user can enter; gone when it is left.

    Args:
        root: Where it is made; default is the system's temporary folder.

    Raises:
        SandboxUnavailable: It cannot be made.
    """

    def __init__(self, root: str | Path | None = None) -> None:
        self.path = make_folder(root, "workspace_root")
        self._folder = OutputFolder(os.open(self.path, os.O_RDONLY | os.O_DIRECTORY), place="the working directory")

    def stage(self, files: Sequence[ExecFile]) -> None:
        """Write the input files.

        Raises:
            InvalidSetting: Two of them need one place: `a` and `a/b`; or a name is too long.
        """
        for file in files:
            target = Path(self.path, file.name)
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.content)
            except OSError as e:
                raise InvalidSetting(f"the input file {file.name!r} cannot be staged: {e.strerror}") from None
            self._folder.staged(str(target.relative_to(self.path)), target.stat())

    def collect(self, limits: Limits) -> tuple[tuple[ExecFile, ...], list[str]]:
        """The files that are new or changed, and why others were left out. Only once the program is dead."""
        self._folder.refused = refused = list[str]()
        try:
            return self._folder.collect(limits), refused
        except CodeLimitError as e:
            return tuple(e.files), [*refused, str(e)]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to collect."""
        with os.scandir(self._folder.fd) as entries:
            return next(entries, None) is None

    def close(self) -> None:
        """Remove everything. Legal twice."""
        self._folder.close()
        remove_tree(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
