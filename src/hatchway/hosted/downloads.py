"""Downloads: files a vendor's code made, under names that cannot leave their folder."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from unicodedata import normalize

from hatchway.core.errors import InvalidSetting
from hatchway.core.results import ExecFile
from hatchway.hosted.code import FileRef

MAX_NAME = 120
"""Bytes, as a file system counts them."""
_STRANGE = re.compile(r"[^\w .()+,=@-]")
_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in "0123456789¹²³")})


def safe_name(filename: str, file_id: str = "") -> str:
    """A plain file name for what a stranger called a file.

    The last part of a path only, letters of any script, all else as `_`; never empty, hidden, reserved or long.
    """
    last = normalize("NFC", re.split(r"[/\\]", filename)[-1])
    name = _STRANGE.sub("_", last).strip(" .")
    if not name.strip("_"):
        name = _STRANGE.sub("_", file_id).strip(" .") or "file"
    if name.partition(".")[0].rstrip().lower() in _RESERVED:
        name = f"_{name}"
    stem, dot, suffix = name.rpartition(".")
    room = MAX_NAME - len(f"{dot}{suffix}".encode())
    return f"{_cut(stem, room)}{dot}{suffix}" if room > 0 and stem else _cut(name, MAX_NAME)


def _cut(text: str, size: int) -> str:
    """As many letters as fit into so many bytes."""
    return text.encode("utf-8", "replace")[:size].decode("utf-8", "ignore")


async def save_all(
    files: Iterable[FileRef], folder: str | os.PathLike[str], fetch: Callable[[FileRef], Awaitable[bytes]]
) -> dict[str, Path]:
    """Each file once, in the folder; by file id where it was written. What is there already is not replaced.

    Raises:
        InvalidSetting: The folder cannot be made or written to.
    """
    place = _folder(folder)
    written: dict[str, Path] = {}
    for file in files:
        if file.file_id not in written:
            content = await fetch(file)
            written[file.file_id] = _written(place, safe_name(file.filename, file.file_id), content)
    return written


def write_all(files: Iterable[ExecFile], folder: str | os.PathLike[str]) -> dict[str, Path]:
    """Files that are here already, as `save_all` writes them; by name where each was written.

    Raises:
        InvalidSetting: The folder cannot be made or written to.
    """
    place = _folder(folder)
    return {file.name: _written(place, safe_name(file.name), file.content) for file in files}


def _folder(folder: str | os.PathLike[str]) -> Path:
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise InvalidSetting(
            f"{place} cannot be a folder for downloads: {e.strerror}", hint="give a folder that can be written to"
        ) from None
    return place


def _written(folder: Path, name: str, content: bytes) -> Path:
    stem, dot, suffix = name.rpartition(".")
    for number in range(1, 10_000):
        unlike = name if number == 1 else f"{stem or suffix} ({number}){dot + suffix if stem else ''}"
        try:
            # O_EXCL takes no link and no file that is there: nothing of this machine is written over
            descriptor = os.open(folder / unlike, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        except FileExistsError:
            continue
        with os.fdopen(descriptor, "wb") as f:
            f.write(content)
        return folder / unlike
    raise InvalidSetting(f"{folder} holds too many files named {name!r}", hint="give another folder")
