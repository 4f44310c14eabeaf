"""File tools of the model: read, write and edit text files of the workspace; a change is shown as a diff first."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, TypedDict

from hatchway.agent.json_tools import JsonTool
from hatchway.agent.workspace_files import WorkspaceFiles, is_secret
from hatchway.core.errors import ToolError
from hatchway.tools.functions import tool

MOST_LINES = 2_000
"""Read at once."""


HIDDEN = " (is there already; what it holds is not shown)"
"""Behind the name of a file that is replaced unseen: a secret, or no text."""


class Replacement(TypedDict):
    """One change: `old` stands exactly once in the file, and `new` takes its place."""

    old: str
    new: str


def file_tools(working_dir: Path) -> list[JsonTool]:
    """The tools for the files of one workspace."""
    files = FileTools(working_dir)
    read = tool(files.read_file, idempotent=True)
    return [
        JsonTool(name="read_file", tool=read),
        JsonTool(name="write_file", tool=tool(files.write_file, sequential=True), diff=files.write_diff),
        JsonTool(name="edit_file", tool=tool(files.edit_file, sequential=True), diff=files.edit_diff),
    ]


class FileTools:
    """Reads and changes the text files of a workspace."""

    def __init__(self, working_dir: Path) -> None:
        self._files = WorkspaceFiles(working_dir)
        self._shown: dict[str, str] = {}

    def read_file(self, path: str, offset: int = 1, limit: int = MOST_LINES) -> str:
        """Read a text file of the workspace, or some of its lines.

        Args:
            path: Relative to the workspace.
            offset: The first line, counted from 1.
            limit: How many lines at most.
        """
        if offset < 1 or limit < 1:
            raise ToolError("offset and limit are 1 or more")
        lines = self._text(path).splitlines(keepends=True)
        shown = lines[offset - 1 : offset - 1 + min(limit, MOST_LINES)]
        left = len(lines) - (offset - 1) - len(shown)
        more = f"\n[{left} more lines; go on with offset={offset + len(shown)}]" if left > 0 and shown else ""
        return "".join(shown) + more

    def write_file(self, path: str, content: str) -> str:
        """Write a text file of the workspace; what it held is replaced, folders are made.

        Args:
            path: Relative to the workspace.
            content: All of it.
        """
        self._check_shown(path)
        self._files.write(path, content.encode("utf-8", "surrogatepass"))
        return f"{path} written, {len(content.splitlines())} lines"

    def edit_file(self, path: str, edits: list[Replacement]) -> str:
        """Change parts of a text file of the workspace; all changes are made, or none.

        Args:
            path: Relative to the workspace.
            edits: Each `old` must stand exactly once in the file as it is when its turn comes.
        """
        self._check_shown(path)
        self._files.write(path, self._edited(path, edits).encode("utf-8", "surrogatepass"))
        return f"{path} changed in {len(edits)} place{'' if len(edits) == 1 else 's'}"

    def write_diff(self, arguments: Mapping[str, Any]) -> str:
        """What `write_file` would change."""
        path = str(arguments["path"])
        try:
            before, old = self._text(path), f"a/{path}"
        except ToolError:
            is_there = os.path.lexists(self._files.root / self._files.name(path))
            before, old = "", f"a/{path}{HIDDEN if is_there else ''}"
        return self._diff(path, before, str(arguments["content"]), old)

    def edit_diff(self, arguments: Mapping[str, Any]) -> str:
        """What `edit_file` would change.

        Raises:
            ToolError: It cannot be done.
        """
        path = str(arguments["path"])
        return self._diff(path, self._text(path), self._edited(path, arguments["edits"]), f"a/{path}")

    def _diff(self, path: str, before: str, after: str, old_name: str) -> str:
        self._shown[self._files.name(path)] = before
        old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
        lines = difflib.unified_diff(old, new, old_name, f"b/{path}")
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

    def _check_shown(self, path: str) -> None:
        """What was approved was a change of the file as it was then."""
        before = self._shown.pop(self._files.name(path), None)
        if before is None:
            return
        try:
            now = self._text(path)
        except ToolError:
            now = ""
        if now != before:
            raise ToolError(f"{path} was changed by somebody else meanwhile; nothing was written", hint="read it again")

    def _edited(self, path: str, edits: list[Replacement]) -> str:
        text = self._text(path, is_changed=True)
        if not edits:
            raise ToolError("no edits were given")
        for number, edit in enumerate(edits, 1):
            old, new = _as_lines_end(text, edit)
            found = text.count(old) if old else 0
            if found != 1:
                where = "is empty" if not old else f"stands {found} times in {path}, not once"
                hint = "quote more of it" if found else "quote it as read_file shows it, with its spaces"
                raise ToolError(f"edit {number}: its old text {where}; nothing was changed", hint=hint)
            text = text.replace(old, new)
        return text

    def _text(self, path: str, *, is_changed: bool = False) -> str:
        name = PurePosixPath(self._files.name(path)).name
        if is_secret(name):
            raise ToolError(f"{path} holds secrets and is not read")
        content = self._files.read(path)
        if b"\0" in content:
            raise ToolError(f"{path} is no text file", hint="open it in a code action")
        try:
            return content.decode("utf-8", "strict" if is_changed else "replace")
        except UnicodeDecodeError:  # what cannot be read would be written back as something else
            raise ToolError(f"{path} is not written in UTF-8", hint="change it in a code action") from None


def _as_lines_end(text: str, edit: Replacement) -> tuple[str, str]:
    """Old and new text of an edit with the line ends of the file: models write a newline for either kind."""
    if "\r\n" not in text or edit["old"] in text:
        return edit["old"], edit["new"]
    return _with_returns(edit["old"]), _with_returns(edit["new"])


def _with_returns(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")
