"""What a caller gives as several things: one thing by itself is not taken apart."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from hatchway.core.errors import InvalidSetting
from hatchway.core.results import ExecFile


def several(name: str, given: Any) -> tuple[Any, ...]:
    """The things of a list, tuple or other iterable.

    Raises:
        InvalidSetting: One thing by itself: a text would be read letter by letter.
    """
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        # its kind alone is told: what was given may hold a secret
        kind = type(cast(object, given)).__name__
        raise InvalidSetting(f"{name} takes several, not one {kind}", hint=f"{name}=[…], also for one")
    return tuple(cast("Iterable[Any]", given))


def texts(name: str, given: Any) -> tuple[str, ...]:
    """Several texts, none of them empty.

    Raises:
        InvalidSetting: One of them is no text, or it is one text by itself.
    """
    every = several(name, given)
    if wrong := [each for each in every if not isinstance(each, str) or not each.strip()]:
        raise InvalidSetting(f"{name} are texts, not {wrong[0]!r:.80}", hint=f'{name}=["…"]')
    return every


def exec_files(given: Any) -> tuple[ExecFile, ...]:
    """Files for a request.

    Raises:
        InvalidSetting: Something that is no `ExecFile`.
    """
    every = several("files", given)
    if wrong := [each for each in every if not isinstance(each, ExecFile)]:
        raise InvalidSetting(
            f"files are ExecFiles, not {type(wrong[0]).__name__}", hint='ExecFile(name="a.csv", content=b"…")'
        )
    return every


def worded(prompt: Any) -> str:
    """A prompt, in words.

    Raises:
        InvalidSetting: Something else, or nothing: the vendor would refuse it, with the whole conversation.
    """
    if not isinstance(prompt, str) or not prompt.strip():
        told = "an empty one" if isinstance(prompt, str) else type(prompt).__name__
        raise InvalidSetting(f"a prompt is text, not {told}", hint='run("What is 6 times 7?")')
    return prompt


def folders(name: str, given: Iterable[str | os.PathLike[str]] | str | os.PathLike[str]) -> tuple[Path, ...]:
    """Folders; a single path is one folder, not the letters of its name ("/" among them).

    Raises:
        InvalidSetting: Something that is no path.
    """
    every: tuple[Any, ...] = (given,) if isinstance(given, str | os.PathLike) else several(name, given)
    try:
        paths = tuple(Path(each) for each in every if os.fspath(each))
    except TypeError:
        paths = ()
    if len(paths) != len(every):
        raise InvalidSetting(f"{name} are folders, not {every!r:.80}", hint=f'{name}=["data"]')
    return paths
