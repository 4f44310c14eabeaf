"""Pictures the code shows become files, and the event that tells of them has their paths."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hatchway.agent.workspace_files import WorkspaceFiles
from hatchway.core.errors import ToolError
from hatchway.core.events import AgentEvent, CodeExecutionOutput
from hatchway.core.results import ExecFile

FOLDER = "images"
"""Of the working directory, where nothing else is said."""


class SavedImages:
    """Saves the pictures of each action.

    Args:
        working_dir: The workspace; code may have put links there, which are not followed.
        folder: Where they go; made when the first one comes.
        tell: Takes the events.
    """

    def __init__(self, working_dir: Path, folder: Path | None, tell: Callable[[AgentEvent], None]) -> None:
        self._folder = working_dir / (folder or FOLDER)
        is_inside = self._folder.is_relative_to(working_dir)
        self._files = WorkspaceFiles(working_dir if is_inside else self._folder)
        self._tell = tell

    def heard(self, event: AgentEvent) -> None:
        """Pass an event on, its pictures saved."""
        if isinstance(event, CodeExecutionOutput) and event.images:
            event = replace(event, images=[self._saved(each) for each in event.images if isinstance(each, ExecFile)])
        self._tell(event)

    def _saved(self, image: ExecFile) -> Path | ExecFile:
        """Its path; the picture itself where it cannot be saved."""
        path = self._folder / f"image-{secrets.token_hex(4)}{Path(image.name).suffix}"
        try:
            self._files.root.mkdir(parents=True, exist_ok=True)
            self._files.write(str(path), image.content)
        except (ToolError, OSError):
            return image
        return path
