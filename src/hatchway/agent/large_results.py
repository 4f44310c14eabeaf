"""Large results: what is too long for a model goes to a file, and the model gets its ends and the path."""

from __future__ import annotations

import itertools
from pathlib import Path

MOST_BYTES = 32_768
"""Of one result that is told whole."""
PREVIEW_LINES = 10
"""Shown of the beginning, and of the end."""
PREVIEW_CHARACTERS = 4_000
"""Of each of them, where lines are long."""


class LargeResults:
    """Keeps them in files of the workspace, where code actions can read them.

    Args:
        folder: Where; made when the first one comes.
        shown_as: The folder as the code and the model see it.
    """

    def __init__(self, folder: Path, shown_as: str) -> None:
        self._folder, self._shown_as = folder, shown_as
        self._numbers = itertools.count(1)

    def shortened(self, text: str, kind: str) -> str:
        """The text, or where it lies and how it begins and ends."""
        size = len(text.encode("utf-8", "surrogatepass"))
        if size <= MOST_BYTES:
            return text
        path = self._written(text, kind)
        lines = text.splitlines()
        head = "\n".join(lines[:PREVIEW_LINES])[:PREVIEW_CHARACTERS]
        tail = "\n".join(lines[-PREVIEW_LINES:])[-PREVIEW_CHARACTERS:]
        where = f"{self._shown_as}/{path.name}"
        return (
            f"{size} bytes in {len(lines)} lines, too long to show. All of it is in the file {where}; read parts of it "
            f"from there.\n\nIt begins:\n{head}\n\n[…]\n\nIt ends:\n{tail}"
        )

    def _written(self, text: str, kind: str) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        while True:
            path = self._folder / f"{kind}-{next(self._numbers)}.txt"
            try:
                with path.open("x", encoding="utf-8", errors="surrogatepass") as file:
                    file.write(text)
                return path
            except FileExistsError:  # of an earlier process, and perhaps still told of
                continue
