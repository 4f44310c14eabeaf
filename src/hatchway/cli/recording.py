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

_LONGEST_NAME = 60
"""Characters: a file's name may have 255 bytes, and a character four of them."""


class Recording:
    """Takes blocks; `write` makes the files anew: at the beginning, to see that it can be done, and after each turn.

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
        blocks = list(joined(self._blocks))
        svg, html = picture(blocks, title=self._title), page(blocks, title=self._title)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._name = name = self._name or self._taken_name()
            made = {f"{name}.svg": svg, f"{name}.html": html}
            for file, text in made.items():
                (self._folder / file).write_text(text, encoding="utf-8")
        except OSError as e:
            raise InvalidSetting(
                f"the recording cannot be written to {self._folder}: {e.strerror}",
                hint="name another with --record-dir",
            ) from e
        return [self._folder / file for file in made]

    def _taken_name(self) -> str:
        """The first name that is free, taken at once: another process may look for one at the same time."""
        wanted = re.sub(r"[^\w-]+", "-", self._title.lower())[:_LONGEST_NAME].strip("-") or "conversation"
        names = (wanted if number == 1 else f"{wanted}-{number}" for number in count(1))
        return next(name for name in names if self._takes(name))

    def _takes(self, name: str) -> bool:
        if os.path.lexists(self._folder / f"{name}.html"):
            return False
        try:
            (self._folder / f"{name}.svg").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True
