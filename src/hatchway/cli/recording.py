"""Recording: a conversation as two files, a picture and a page."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from hatchway.core.errors import InvalidSetting
from hatchway.trace.blocks import Block
from hatchway.trace.page import page
from hatchway.trace.record import joined
from hatchway.trace.terminal import picture


class Recording:
    """Takes blocks; `write` makes the files anew, so that they can be written after each turn.

    Files that were there before are left as they are: the names get a number then.

    Args:
        folder: Where they go; made when they are written.
        title: Stands at their head, and gives them their names.
    """

    def __init__(self, folder: Path, title: str) -> None:
        self._folder, self._title = folder, title
        self._blocks: list[Block] = []
        self._name = ""

    def add(self, blocks: Sequence[Block]) -> None:
        """More of the conversation."""
        self._blocks += blocks

    def write(self) -> list[Path]:
        """The files.

        Raises:
            InvalidSetting: They cannot be written.
        """
        self._name = name = self._name or self._free_name()
        blocks = list(joined(self._blocks))
        made = {f"{name}.svg": picture(blocks, title=self._title), f"{name}.html": page(blocks, title=self._title)}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for file, text in made.items():
                (self._folder / file).write_text(text, encoding="utf-8")
        except OSError as e:
            raise InvalidSetting(
                f"the recording cannot be written to {self._folder}: {e.strerror}",
                hint="name another with --record-dir",
            ) from e
        return [self._folder / file for file in made]

    def _free_name(self) -> str:
        wanted = re.sub(r"[^\w-]+", "-", self._title.lower()).strip("-") or "conversation"
        names = (wanted if number == 1 else f"{wanted}-{number}" for number in count(1))
        return next(name for name in names if not any(self._is_there(name, kind) for kind in ("svg", "html")))

    def _is_there(self, name: str, kind: str) -> bool:
        return os.path.lexists(self._folder / f"{name}.{kind}")
