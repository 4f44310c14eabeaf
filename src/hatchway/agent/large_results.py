"""Large results: what is too long for a model goes to a file, and the model gets its ends and the path."""

from __future__ import annotations

import secrets

from hatchway.agent.workspace_files import WorkspaceFiles

MOST_BYTES = 32_768
"""Of one result that is told whole."""
PREVIEW_LINES = 10
"""Shown of the beginning, and of the end."""
PREVIEW_CHARACTERS = 4_000
"""Of each of them, where lines are long."""
FOLDER = ".hatchway/results"
"""Of the workspace; code actions can read it."""


class LargeResults:
    """Keeps them in files of the workspace.

    Args:
        files: The workspace.
    """

    def __init__(self, files: WorkspaceFiles) -> None:
        self._files = files

    def shortened(self, text: str, kind: str) -> str:
        """The text, or where it lies and how it begins and ends."""
        content = text.encode("utf-8", "surrogatepass")
        if len(content) <= MOST_BYTES:
            return text
        path = f"{FOLDER}/{kind}-{secrets.token_hex(4)}.txt"
        self._files.write(path, content)
        lines = text.splitlines()
        head = "\n".join(lines[:PREVIEW_LINES])[:PREVIEW_CHARACTERS]
        tail = "\n".join(lines[-PREVIEW_LINES:])[-PREVIEW_CHARACTERS:]
        return (
            f"{len(content)} bytes in {len(lines)} lines, too long to show. All of it is in the file {path}; read "
            f"parts of it from there.\n\nIt begins:\n{head}\n\n[…]\n\nIt ends:\n{tail}"
        )
