"""Tools saved on disk, as discovery lists them: `gentools/<category>/<tool>/api.py`, read and never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from hatchway.tools.search.catalog import Entry, meaning, summary

FOLDER = "gentools"
_MAX_BYTES = 200_000


class SavedTools:
    """The saved tools below a directory."""

    def __init__(self, directory: Path) -> None:
        self._root = directory / FOLDER
        self._seen: tuple[tuple[str, int], ...] = ()

    def is_changed(self) -> bool:
        """Whether a tool came, went or changed since they were read last."""
        return self._state() != self._seen

    def entries(self) -> list[Entry]:
        """Each saved tool; a file that is no Python is left out."""
        self._seen = self._state()
        return [found for path in self._files() if (found := _entry(path)) is not None]

    def _files(self) -> list[Path]:
        return sorted(self._root.glob("*/*/api.py"))

    def _state(self) -> tuple[tuple[str, int], ...]:
        return tuple(self._states())

    def _states(self) -> Iterator[tuple[str, int]]:
        for path in self._files():
            try:
                yield str(path), path.stat().st_mtime_ns
            except OSError:
                continue


def _entry(path: Path) -> Entry | None:
    try:
        text = path.read_text(encoding="utf-8")[:_MAX_BYTES]
        body = ast.parse(text).body
    except (OSError, ValueError, SyntaxError, RecursionError):
        return None
    run = next((node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)), None)
    if run is None:
        return None
    category, name = path.parent.parent.name, path.parent.name
    said = ast.get_docstring(run) or ""
    style = "async def" if isinstance(run, ast.AsyncFunctionDef) else "def"
    given = f" -> {ast.unparse(run.returns)}" if run.returns is not None else ""
    shown = f"from {FOLDER}.{category}.{name} import {run.name}\n\n{style} {run.name}({ast.unparse(run.args)}){given}:"
    return Entry(
        name=f"{FOLDER}.{category}.{name}",
        category=category,
        summary=summary(said),
        text=f"{category} {name.replace('_', ' ')} {said}",
        meaning=meaning(f"{category}.{name}", said),
        description=f'{shown}\n    """{said}"""\n',
    )
