"""Pictures the code shows become files, and the event that tells of them has their paths."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hatchway.core.events import AgentEvent, CodeExecutionOutput
from hatchway.core.results import ExecFile


class SavedImages:
    """Saves the pictures of each action.

    Args:
        folder: Where; made when the first one comes.
        tell: Takes the events.
    """

    def __init__(self, folder: Path, tell: Callable[[AgentEvent], None]) -> None:
        self._folder, self._tell = folder, tell
        self._numbers = itertools.count(1)

    def heard(self, event: AgentEvent) -> None:
        """Pass an event on, its pictures saved."""
        if isinstance(event, CodeExecutionOutput) and event.images:
            event = replace(event, images=[self._saved(each) for each in event.images if isinstance(each, ExecFile)])
        self._tell(event)

    def _saved(self, image: ExecFile) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        ending = Path(image.name).suffix
        while True:
            path = self._folder / f"image-{next(self._numbers)}{ending}"
            try:
                with path.open("xb") as file:
                    file.write(image.content)
                return path
            except FileExistsError:  # of an earlier process
                continue
