"""Files into and out of a container as tar streams. What comes out was made by the code and may be hostile."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from hatchway.core.errors import InvalidSetting
from hatchway.core.limits import Limits
from hatchway.core.results import ExecFile

PROGRAM = ".hatchway-program"
MAX_DEPTH = 16
MAX_ENTRIES = 20_000
"""Entries looked at: more is nobody's honest output."""


def packed(files: Sequence[ExecFile], program: bytes) -> bytes:
    """The input files and the program as a tar.

    Raises:
        InvalidSetting: A file has the name under which the program travels.
    """
    if any(file.name == PROGRAM for file in files):
        raise InvalidSetting(f"no input file can be named {PROGRAM}: the program travels under that name")
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in [*((file.name, file.content) for file in files), (PROGRAM, program)]:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return data.getvalue()


@dataclass(slots=True)
class Unpacked:
    """What a tar held."""

    files: list[ExecFile] = field(default_factory=list[ExecFile])
    """New or changed files, by name."""
    notes: list[str] = field(default_factory=list[str])
    """Why others were left out."""
    size: int = 0
    """Bytes of the files."""


def unpacked(data: bytes, staged: Mapping[str, bytes], limits: Limits, *, is_cut: bool = False) -> Unpacked:
    """The plain files of a tar that are new or changed, within the limits.

    Args:
        data: The tar, as the container sent it.
        staged: What was put in, by name: files that are still the same are left out.
        limits: `output_files`, `file_bytes` and `disk_bytes` hold here.
        is_cut: There was more than was taken.
    """
    found = Unpacked()
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:", encoding="utf-8", errors="surrogateescape") as tar:
            for number, entry in enumerate(tar):
                if number >= MAX_ENTRIES or not _take(tar, entry, found, staged, limits):
                    break
    except (tarfile.TarError, EOFError, ValueError, OverflowError, OSError):
        if not is_cut and data:
            found.notes.append("the files of the program came back damaged: some are left out")
    if is_cut:
        found.notes.append("the program left more in its working directory than is taken: the rest is left out")
    found.files.sort(key=lambda file: file.name)
    return found


def _take(
    tar: tarfile.TarFile, entry: tarfile.TarInfo, found: Unpacked, staged: Mapping[str, bytes], limits: Limits
) -> bool:
    """Keep one entry, or note why not; False when nothing more can be taken."""
    name = entry.name.removeprefix("./")
    if entry.isdir():
        return True
    if problem := _problem(name, entry):
        if len(found.notes) < limits.output_files:
            found.notes.append(f"{name!r} is left out: {problem}")
        return True
    if entry.size > limits.file_bytes:
        found.notes.append(f"{name!r} is left out: it has {entry.size} bytes, the limit is {limits.file_bytes}")
        return True
    source = tar.extractfile(entry)
    content = source.read() if source is not None else b""
    if staged.get(name) == content:
        return True
    if len(found.files) >= limits.output_files:
        found.notes.append(f"the program left more than {limits.output_files} files: the rest is left out")
        return False
    found.size += len(content)
    if found.size > limits.disk_bytes:
        found.notes.append(f"the program's files have more than {limits.disk_bytes} bytes: the rest is left out")
        return False
    found.files.append(ExecFile(name=name, content=content))
    return True


def _problem(name: str, entry: tarfile.TarInfo) -> str:
    parts = PurePosixPath(name).parts
    if not name.isprintable():
        return "its name holds control characters or is not UTF-8"
    if not parts or name.startswith("/") or ".." in parts or len(parts) > MAX_DEPTH:
        return "its name leaves the working directory, or lies too deep"
    if entry.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or entry.issparse():
        return "it is a link, no file, or cannot be read"
    return ""
