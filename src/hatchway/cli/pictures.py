"""Where `hatchway exec` puts what the code shows: into a folder, without ever writing over a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hatchway.core.results import Display


class Pictures:
    """Writes displays as they come.

    Args:
        folder: Where to; None writes nothing, and what came is still told.
    """

    def __init__(self, folder: str | None) -> None:
        self._folder = None if folder is None else Path(folder)
        self.told: list[dict[str, Any]] = []
        """Each display as `--json` tells it."""

    def take(self, display: Display) -> str:
        """Write one; what to tell a person about it."""
        path = self._written(display)
        about = {"name": display.name, "mime_type": display.mime_type, "bytes": len(display.content)}
        self.told.append({**about, "text": display.text, "path": None if path is None else str(path)})
        if path is not None:
            return f"wrote {path}"
        return f"{display.name} ({len(display.content)} bytes) is not kept: give a folder with --images"

    def _written(self, display: Display) -> Path | None:
        if self._folder is None:
            return None
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            return _new_file(self._folder, display)
        except OSError as e:
            raise click.ClickException(f"--images {self._folder}: {e.strerror or e}") from None


def _new_file(folder: Path, display: Display) -> Path:
    """`display-1.png`, or `display-1-2.png` when there is one of that name already."""
    path, number = folder / display.name, 1
    while True:
        try:
            with path.open("xb") as file:
                file.write(display.content)
            return path
        except FileExistsError:
            number += 1
            path = (folder / display.name).with_stem(f"{Path(display.name).stem}-{number}")
